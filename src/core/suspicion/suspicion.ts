/**
 * Which task kills its workers. A batch whose worker died says little: most workers that vanish were ended from outside,
 * and many tasks were lost with each. So a task has to be lost twice before it is a suspect. Suspects run apart from all
 * others, each group on a worker of its own, and the groups get smaller with each loss until the task is alone:
 *
 *   losses | runs
 *   0, 1   | with all others: one loss is no evidence
 *   2      | with suspects only, at most 16 in a batch
 *   3      | at most 4
 *   4, 5   | alone
 *   6      | never again: it is a dead letter
 *
 * A division by four finds one task among thousands with the fewest dead workers: fewer than by halves, and a group of
 * innocent tasks costs one batch. A task that was named as the one that was running goes on alone at once.
 *
 * When the coordinator itself dies, nothing says that a page was the cause. Tasks that were lent at three such deaths
 * become suspects, and no more than that: from then on their worker is another process, so a page that kills its process
 * does not end the coordinator again, and a coordinator that is killed from outside gives up no task.
 */
export interface Suspicion {
  /** Workers that died with the task, since its last attempt. */
  losses: number;
  /** Coordinators that died while the task was lent, since its last attempt. */
  crashes: number;
}

/** What a batch that is taken back says about its tasks: nothing, that worker or coordinator died, or which task ran then. */
export type Blame = 'none' | 'worker' | 'coordinator' | { running: readonly number[] };

/** Most suspects of a batch, by their losses. */
const GROUP_SIZES = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 16, 4, 1, 1] as const;
/** A task that was lost this often, the last two times alone, is what kills its workers. */
export const LOSSES_MAX = GROUP_SIZES.length;
/** From so many losses on a task is a suspect. */
export const SUSPECT_LOSSES = GROUP_SIZES.findIndex((size) => Number.isFinite(size));
const ALONE_LOSSES = GROUP_SIZES.indexOf(1);
/** Deaths of the coordinator after which the tasks that it had lent are suspects. */
export const CRASHES_MAX = 3;

export function nextSuspicion(before: Suspicion, blame: Blame, taskId: number): Suspicion {
  const { losses, crashes } = before;
  if (blame === 'none') return before;
  if (blame === 'worker') return { losses: losses + 1, crashes };
  if (blame === 'coordinator')
    return {
      losses: crashes + 1 >= CRASHES_MAX ? Math.max(losses, SUSPECT_LOSSES) : losses,
      crashes: Math.min(crashes + 1, CRASHES_MAX),
    };
  return blame.running.includes(taskId) ? { losses: Math.max(losses + 1, ALONE_LOSSES), crashes } : before;
}

/** How many of these suspects, from the first one on, make a batch. */
export function suspectsTogether(suspects: readonly Pick<Suspicion, 'losses'>[], most: number): number {
  let size = most;
  for (const [index, { losses }] of suspects.entries()) {
    size = Math.min(size, GROUP_SIZES[Math.min(losses, LOSSES_MAX - 1)]!);
    if (index >= size) return index;
  }
  return Math.min(size, suspects.length);
}
