/**
 * How the slots of all workers are shared between jobs.
 *
 * Claimant  a job; `wanted` is how many slots it could use now.
 * Owner     who the jobs belong to. Slots are shared between owners first, then between the jobs of each.
 * Weight    twice the weight is twice the share, as long as both want more than they have.
 *
 * What one does not want goes to the others, by their weights, until all have what they want or nothing is left.
 */
export interface Claimant {
  owner: string;
  ownerWeight: number;
  weight: number;
  wanted: number;
}

/** The share of each claimant, in the order of the list. Shares may be fractions, and add up to `total` at most. */
export function fairShares(total: number, claimants: readonly Claimant[]): number[] {
  const owners = new Map<string, { weight: number; wanted: number; members: number[] }>();
  for (const [index, { owner, ownerWeight, wanted }] of claimants.entries()) {
    const entry = owners.get(owner);
    if (!entry) owners.set(owner, { weight: ownerWeight, wanted, members: [index] });
    else {
      entry.wanted += wanted;
      entry.members.push(index);
    }
  }
  const shares = new Array<number>(claimants.length).fill(0);
  const groups = [...owners.values()];
  for (const [place, part] of divide(total, groups).entries()) {
    const { members } = groups[place]!;
    const parts = divide(
      part,
      members.map((index) => claimants[index]!),
    );
    for (const [nth, index] of members.entries()) shares[index] = parts[nth]!;
  }
  return shares;
}

/** Divides by weight, none gets more than it wants. */
function divide(total: number, items: readonly { weight: number; wanted: number }[]): number[] {
  const parts = new Array<number>(items.length).fill(0);
  // Whoever needs least for its weight is served first: what it leaves is divided among the rest.
  const order = [...items.keys()].sort(
    (a, b) => items[a]!.wanted / items[a]!.weight - items[b]!.wanted / items[b]!.weight,
  );
  let left = total;
  let weights = items.reduce((sum, { weight }) => sum + weight, 0);
  for (const index of order) {
    const { weight, wanted } = items[index]!;
    const part = Math.min(wanted, (left * weight) / weights);
    parts[index] = part;
    left -= part;
    weights -= weight;
  }
  return parts;
}

/** Priorities of jobs; each step doubles the share. */
export const JOB_PRIORITY_MAX = 10;

export function weightOfPriority(priority: number): number {
  return 2 ** priority;
}
