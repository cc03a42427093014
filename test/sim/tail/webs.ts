import type { TailPolicy } from '../../../src/core/tail/tail.ts';
import { SeededRandom } from '../virtual-time.ts';
import { crawlTail, type TailWeb } from './crawl-tail.ts';

/** Crawls whose last pages are slow, each for another reason. A seed decides sizes, rates and latencies. */

type Trouble = (random: SeededRandom) => TailWeb['answer'];

const timeoutMs = 30_000;

export const TAIL_KINDS: Readonly<Record<string, { trouble: Trouble; isHelpable: boolean }>> = {
  'no trouble': { isHelpable: true, trouble: (random) => usual(random) },
  'one request in a hundred stalls': {
    isHelpable: true,
    trouble: (random) => {
      const answer = usual(random);
      return (request) => (request.random.chance(0.01) ? { ms: timeoutMs, comes: false } : answer(request));
    },
  },
  'one request in fifty takes 5 to 25 s': {
    isHelpable: true,
    trouble: (random) => {
      const answer = usual(random);
      return (request) =>
        request.random.chance(0.02)
          ? { ms: request.random.between(5_000, 25_000), comes: true }
          : answer(request);
    },
  },
  'one page in a hundred stalls at first': {
    isHelpable: true,
    trouble: (random) => {
      const answer = usual(random);
      const stalls = random.between(0, 100);
      return (request) =>
        request.page % 100 === stalls && request.count === 1
          ? { ms: timeoutMs, comes: false }
          : answer(request);
    },
  },
  'three of the last pages stall at first': {
    isHelpable: true,
    trouble: (random) => {
      const answer = usual(random);
      return (request) =>
        request.page >= request.pages - 3 && request.count === 1
          ? { ms: timeoutMs, comes: false }
          : answer(request);
    },
  },
  'one page in 250 never comes': {
    isHelpable: false,
    trouble: (random) => {
      const answer = usual(random);
      const dead = random.between(0, 250);
      return (request) => (request.page % 250 === dead ? { ms: timeoutMs, comes: false } : answer(request));
    },
  },
};

/** Latencies spread as they are on the web: the middle of a host is anywhere from 50 to 800 ms. */
function usual(random: SeededRandom): TailWeb['answer'] {
  const middleMs = 50 * 16 ** random.next();
  return ({ random: ofRequest }) => ({ ms: middleMs * Math.exp(0.5 * normal(ofRequest)), comes: true });
}

export interface TailScore {
  tailShare: number;
  /** Requests by page, the most. */
  requestsMost: number;
  accepted: number;
  done: number;
  pending: number;
  dead: number;
  /** The least time between two requests to a host, as a share of what the job allows. */
  gapLeast: number;
}

/** `seconds`: about what a crawl takes without its trouble. */
export async function competeAtTail(
  kind: string,
  seed: number,
  seconds: number,
): Promise<Record<TailPolicy, TailScore>> {
  const random = new SeededRandom(seed);
  const [hosts, gapMs] = [random.between(3, 9), random.pick([250, 500, 1_000])];
  const web = {
    ...{ seed, hosts, gapMs, pages: Math.round((hosts * seconds * 1_000) / gapMs) },
    answer: TAIL_KINDS[kind]!.trouble(random),
  };
  const scoreOf = async (policy: TailPolicy): Promise<TailScore> => {
    const { tailShare, counters, requests, sent } = await crawlTail(policy, web);
    const { accepted, done, pending, dead } = counters;
    let gapLeast = Number.POSITIVE_INFINITY;
    for (const times of sent.values())
      for (let index = 1; index < times.length; index++)
        gapLeast = Math.min(gapLeast, (times[index]! - times[index - 1]!) / web.gapMs);
    return {
      ...{ tailShare, accepted, done, pending, dead, gapLeast },
      requestsMost: Math.max(...requests.values()),
    };
  };
  return { wait: await scoreOf('wait'), repeat: await scoreOf('repeat'), defer: await scoreOf('defer') };
}

function normal(random: SeededRandom): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
