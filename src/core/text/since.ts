/** `12 s`, `3 min`, `5 h`, `2 days`: how long something has lasted, for people. */
function lastingText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}

/**
 * A reason to wait with the time it has lasted. `no host can be reached: next probe at 11:58` becomes `no host can be
 * reached since 12 s: next probe at 11:58`, because narrow screens cut the end.
 */
export function withSince(reason: string, ms: number): string {
  const end = reason.indexOf(': ');
  const [what, rest] = end === -1 ? [reason, ''] : [reason.slice(0, end), reason.slice(end)];
  return `${what} since ${lastingText(ms)}${rest}`;
}
