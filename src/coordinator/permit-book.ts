import type { Permit } from '../core/batch.ts';
import type { HostLoad } from './plan-batches.ts';

interface HostEntry {
  permits: number;
  parallel: number;
  /** End of the last permit that is out. */
  takenUntil: number;
  failuresInRow: number;
  rests: number;
  restUntil: number;
}

const NO_LOAD: HostLoad = { permits: 0, parallel: 0 };

/** What is out for which host. Holds only hosts with open permits: memory grows with work in flight. */
export class PermitBook {
  readonly #hosts = new Map<string, HostEntry>();

  load(host: string): HostLoad {
    return this.#hosts.get(host) ?? NO_LOAD;
  }

  grant(permit: Permit, health: { failuresInRow: number; rests: number }): void {
    const entry = this.#hosts.get(permit.host);
    if (entry) {
      entry.permits++;
      entry.parallel += permit.parallel;
      entry.takenUntil = Math.max(entry.takenUntil, permit.endAt);
      return;
    }
    this.#hosts.set(permit.host, {
      permits: 1,
      parallel: permit.parallel,
      takenUntil: permit.endAt,
      failuresInRow: health.failuresInRow,
      rests: health.rests,
      restUntil: 0,
    });
  }

  entry(host: string): HostEntry | null {
    return this.#hosts.get(host) ?? null;
  }

  /** True when it was the host's last open permit. */
  release(permit: Permit): boolean {
    const entry = this.#hosts.get(permit.host);
    if (!entry) return true;
    entry.permits--;
    entry.parallel -= permit.parallel;
    if (entry.permits > 0) return false;
    this.#hosts.delete(permit.host);
    return true;
  }

  get size(): number {
    return this.#hosts.size;
  }
}
