import type { Outcome } from '../../core/batch/outcome.ts';
import { BoundedMap } from '../../core/lru.ts';
import { isHtml } from '../../core/media/media-type.ts';

/**
 * Sees when a host that had a page of its own for each URL begins to give all of them the same few bytes: a refusal that
 * says success. One answer for many URLs is no refusal by itself (an application that runs in the browser, a list of
 * missing products): it must be far smaller than what the host gave before, and come many times in a row.
 */

export const REPEATS_MIN = 8;
const EARLIER_MIN = 8;
export const TINY_BYTES = 2 * 1024;
const SMALLER_TIMES = 4;
const KNOWN_MAX = 4;
const HOSTS_MAX = 10_000;

interface HostMemory {
  /** Different bodies so far, up to what is needed, and the mean size of larger ones. */
  earlier: Set<string>;
  meanBytes: number;
  last: string;
  repeats: number;
  /** Bodies that were found to be refusals. */
  known: string[];
}

export class RepeatedPages {
  readonly #hosts = new BoundedMap<string, HostMemory>(HOSTS_MAX);

  /** The outcome itself, or the refusal that it turns out to be. */
  judge(outcome: Outcome, host: string): Outcome {
    if (outcome.kind !== 'fetched') return outcome;
    const { taskId, page, trace } = outcome;
    const memory = this.#memoryOf(host);
    if (!remembers(memory, page.sha256, page.bytes)) return outcome;
    if (!isHtml(page.contentType)) return outcome;
    const detail = `the same ${page.bytes} bytes for ${memory.repeats} URLs in a row, on a host whose pages differed before`;
    return { kind: 'failed', taskId, code: 'soft-block', detail, page: null, retryAfterMs: null, trace };
  }

  #memoryOf(host: string): HostMemory {
    let memory = this.#hosts.get(host);
    if (memory) return memory;
    memory = { earlier: new Set(), meanBytes: 0, last: '', repeats: 0, known: [] };
    this.#hosts.set(host, memory);
    return memory;
  }
}

/** Takes a body in, and says whether it is a refusal. */
function remembers(memory: HostMemory, sha256: string, bytes: number): boolean {
  memory.repeats = memory.last === sha256 ? memory.repeats + 1 : 1;
  memory.last = sha256;
  if (memory.known.includes(sha256)) return true;
  const isRepeat = memory.repeats >= REPEATS_MIN && memory.earlier.size >= EARLIER_MIN;
  if (isRepeat && bytes <= TINY_BYTES && bytes * SMALLER_TIMES <= memory.meanBytes) {
    memory.known = [sha256, ...memory.known].slice(0, KNOWN_MAX);
    return true;
  }
  if (memory.repeats === 1) {
    if (memory.earlier.size < EARLIER_MIN) memory.earlier.add(sha256);
    memory.meanBytes = memory.meanBytes === 0 ? bytes : memory.meanBytes * 0.9 + bytes * 0.1;
  }
  return false;
}
