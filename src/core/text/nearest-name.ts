const SUGGESTED_MAX = 5;

/** `; did you mean this?` after an unknown name, or nothing when none is near. */
export function suggestion(word: string, known: readonly string[]): string {
  // `timeout` is a part of several names, and near to none.
  const longer = known.filter((name) => name.split('-').includes(word)).slice(0, SUGGESTED_MAX);
  if (longer.length > 0) return `; did you mean ${longer.join(', ').replace(/, ([^,]*)$/, ' or $1')}?`;
  const near = known
    .map((name) => ({ name, distance: editDistance(word, name) }))
    .sort((a, b) => a.distance - b.distance)[0];
  return near && near.distance <= Math.max(2, word.length / 3) ? `; did you mean ${near.name}?` : '';
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length]!;
}
