/** The share of one core that this process has used since it was asked last. */
export class CpuMeter {
  #at = performance.now();
  #usage = process.cpuUsage();

  take(): number {
    const at = performance.now();
    const spent = process.cpuUsage(this.#usage);
    const share = (spent.user + spent.system) / 1_000 / Math.max(1, at - this.#at);
    this.#at = at;
    this.#usage = process.cpuUsage();
    return Math.round(share * 1_000) / 1_000;
  }
}
