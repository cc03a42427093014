import { describe, expect, test } from 'vitest';
import { fixturesOf } from '../../fuzz/fixtures.ts';
import { judge } from '../../fuzz/judge.ts';
import { Random, seedOfCase } from '../../fuzz/random.ts';
import { TARGETS } from '../../fuzz/targets.ts';
import { testSeed } from '../support/seed.ts';

/** A few cases of what `npm run fuzz` tries for minutes, and every input that it has found. */

const CASES = 100;

describe.each(Object.keys(TARGETS))('inputs for %s', (name) => {
  test('that were once found, and some new ones', async () => {
    const target = await TARGETS[name]!();
    try {
      for (const { name: file, input } of fixturesOf(name))
        expect(await judge(target, input), `test/fixtures/fuzz/${name}/${file}`).toBeNull();
      for (let index = 0; index < CASES; index++) {
        const input = target.generate(new Random(seedOfCase(testSeed(), index)));
        const verdict = await judge(target, input);
        if (verdict !== null) throw new Error(`${verdict}\ninput in base64: ${input.toString('base64')}`);
      }
    } finally {
      await target.close?.();
    }
  });
});
