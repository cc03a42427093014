import { Environment, type EnvironmentSettings, type Run } from './environment.ts';

export interface FleetOptions {
  /** Environments that may work at once; more calls are refused. */
  concurrency: number;
  /** An environment without work is ended after so long. */
  idleMs: number;
}

/** All environments of one function. */
export class FunctionFleet {
  readonly #options: FleetOptions;
  readonly #all = new Map<string, Environment>();
  /** Those without work, with the time since when; the last used is used first, as Lambda does. */
  #idle: { environment: Environment; since: number }[] = [];
  readonly #reaper: NodeJS.Timeout;
  #settings: EnvironmentSettings;
  #busy = 0;

  constructor(settings: EnvironmentSettings, options: FleetOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#reaper = setInterval(() => this.#reap(), Math.max(20, options.idleMs / 4));
    this.#reaper.unref();
  }

  environment(id: string): Environment | null {
    return this.#all.get(id) ?? null;
  }

  get pids(): number[] {
    return [...this.#all.values()].map(({ pid }) => pid);
  }

  /** Null when no more may work at once. */
  async invoke(payload: Buffer): Promise<Run | null> {
    if (this.#busy >= this.#options.concurrency) return null;
    this.#busy++;
    const settings = this.#settings;
    const environment = this.#idle.pop()?.environment ?? this.#start();
    try {
      return await environment.run(payload);
    } finally {
      this.#busy--;
      // Of an older code or configuration: its work is done.
      if (settings !== this.#settings) environment.end();
      else if (this.#all.has(environment.id)) this.#idle.push({ environment, since: performance.now() });
    }
  }

  /** From now on with another code or configuration. */
  replace(settings: EnvironmentSettings): void {
    this.#settings = settings;
    for (const { environment } of this.#idle.splice(0)) environment.end();
  }

  close(): void {
    clearInterval(this.#reaper);
    for (const environment of this.#all.values()) environment.end();
  }

  #start(): Environment {
    const environment = new Environment(this.#settings, (ended) => {
      this.#all.delete(ended.id);
      this.#idle = this.#idle.filter((one) => one.environment !== ended);
    });
    this.#all.set(environment.id, environment);
    return environment;
  }

  #reap(): void {
    const before = performance.now() - this.#options.idleMs;
    const old = this.#idle.filter(({ since }) => since < before);
    this.#idle = this.#idle.filter(({ since }) => since >= before);
    for (const { environment } of old) environment.end();
  }
}
