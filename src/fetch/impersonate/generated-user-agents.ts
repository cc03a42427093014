import type { UserAgents } from '../../ports/user-agents.ts';

/** Draws from the data of `header-generator`. Loaded with the first identity: 100 ms that honest jobs do not spend. */
export async function openGeneratedUserAgents(): Promise<UserAgents> {
  const { HeaderGenerator } = await import('header-generator');
  const generator = new HeaderGenerator({ httpVersion: '2' });
  return {
    *drawn(seed, device) {
      const random = seededRandom(seed);
      while (true) {
        const headers = withRandom(random, () => generator.getHeaders({ devices: [device], strict: true }));
        yield headers['user-agent'] ?? headers['User-Agent'] ?? '';
      }
    },
  };
}

/** The generator knows only the global chance. It runs without a pause, so no other code can see this one. */
function withRandom<T>(random: () => number, work: () => T): T {
  const original = Math.random;
  Math.random = random;
  try {
    return work();
  } finally {
    Math.random = original;
  }
}

/** Mulberry32: small, and the same everywhere. */
function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}
