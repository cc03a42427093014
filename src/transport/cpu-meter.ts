/** Over a shorter time a share says nothing. */
const LEAST_MS = 1_000;

/** The share of one core that this process has used since it was asked last. */
export class CpuMeter {
  #at = performance.now();
  #usage = process.cpuUsage();
  #share = 0;

  take(): number {
    const at = performance.now();
    if (at - this.#at < LEAST_MS) return this.#share;
    const spent = process.cpuUsage(this.#usage);
    this.#share = Math.round((spent.user + spent.system) / (at - this.#at)) / 1_000;
    this.#at = at;
    this.#usage = process.cpuUsage();
    return this.#share;
  }
}
