/** Lets a batch that runs be asked for hosts, also before it has begun. */
export class WantedHosts {
  readonly #hosts = new Set<string>();
  #giveBack: ((hosts: ReadonlySet<string>) => void) | null = null;

  ask(hosts: readonly string[]): void {
    if (this.#giveBack) this.#giveBack(new Set(hosts));
    else for (const host of hosts) this.#hosts.add(host);
  }

  onAsked(giveBack: (hosts: ReadonlySet<string>) => void): void {
    this.#giveBack = giveBack;
    if (this.#hosts.size > 0) giveBack(this.#hosts);
  }
}
