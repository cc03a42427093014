import { randomInt } from 'node:crypto';

/**
 * What is random in a test comes from one number for each run. It is printed at the start, and
 * `SEINE_TEST_SEED=<number> npm test` repeats what a run tried.
 */
const VARIABLE = 'SEINE_TEST_SEED';

/** Chosen once, by whoever starts first: the processes below find it in their environment. */
export function testSeed(): number {
  const given = process.env[VARIABLE];
  if (given === undefined) {
    const seed = randomInt(2 ** 31 - 1);
    process.env[VARIABLE] = String(seed);
    process.stdout.write(`seed ${seed}: repeat this run with ${VARIABLE}=${seed}\n`);
    return seed;
  }
  if (!/^\d{1,10}$/.test(given) || Number(given) >= 2 ** 31)
    throw new Error(`${VARIABLE} is ${given}: set it to a whole number below ${2 ** 31}, or not at all`);
  return Number(given);
}
