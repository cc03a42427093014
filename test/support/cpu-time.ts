/** What some work costs this process: unlike a clock, the same on a busy machine. */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** For work without a pause: what this thread has cost so far, in milliseconds. */
export function cpuNow(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
