import type { RobotsRules } from '../../core/robots/robots.ts';

/** What is parsed of a robots.txt, and until when it may be used. */
export interface ParsedRules {
  rules: RobotsRules;
  expiresAt: number;
}

/** What parsed rules take together, unless the machine has less to give. A site can make its own take 10 MB. */
export const PARSED_ROBOTS_BYTES_MAX = 64 * 1024 * 1024;
const ENTRIES_MAX = 10_000;

/**
 * Rules of robots.txt that are kept parsed, for all jobs of the process together: many jobs take no more memory than one.
 * When they are too many or too large, those parsed the longest ago are forgotten and read back from the store.
 */
export class ParsedRobots {
  readonly #bytesMax: number;
  readonly #entries = new Map<string, ParsedRules>();
  #bytes = 0;

  constructor(bytesMax = PARSED_ROBOTS_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get(key: string): ParsedRules | undefined {
    return this.#entries.get(key);
  }

  set(key: string, parsed: ParsedRules): void {
    this.#forget(key);
    for (const [oldest] of this.#entries) {
      const fits = this.#bytes + parsed.rules.bytes <= this.#bytesMax;
      if (fits && this.#entries.size < ENTRIES_MAX) break;
      this.#forget(oldest);
    }
    this.#entries.set(key, parsed);
    this.#bytes += parsed.rules.bytes;
  }

  #forget(key: string): void {
    this.#bytes -= this.#entries.get(key)?.rules.bytes ?? 0;
    this.#entries.delete(key);
  }
}
