import { describe, expect, test } from 'vitest';
import { simulateSickPages } from './sick-pages.ts';
import { FAULTS, simulate } from './simulate.ts';

/** Seeds and tasks of each; `npm run sim` does many more. */
const SEEDS = 200;
const TASKS = 40;

/**
 * Seeds that found a defect when it was there, with more tasks than the others. What a seed does changes with the
 * simulation and the engine; `npm run sim-reverts` shows that defects are still found.
 */
const FOUND = [
  { seed: 18, tasks: 60, defect: 'pages died as forbidden whose host answered others in the same report' },
  { seed: 123, tasks: 60, defect: 'a ban that was met while the clock was ahead was waited out for a day' },
  { seed: 704, tasks: 60, defect: 'a coordinator that stood still waited for a batch that another one took' },
  { seed: 1, tasks: 60, defect: 'two hosts were given up because this machine had no network' },
  {
    seed: 22127,
    tasks: 200,
    defect: 'probes that an outage put off counted as failed, and their hosts were given up',
  },
  { seed: 24205, tasks: 200, jobs: 2, defect: 'the retry of a robots.txt freed a host that another job had' },
  {
    seed: 30056,
    tasks: 200,
    defect: 'a good page died with its host, because only pages that always fail were left to probe it',
  },
  {
    seed: 59,
    tasks: 200,
    jobs: 3,
    defect: 'a host that is gone was waited for as if the network were, since that had been so at first',
  },
  {
    seed: 21,
    tasks: 60,
    defect:
      'a batch that was planned under a clock that was ahead kept its hosts for a day, once it was taken over',
  },
  { seed: 10140, tasks: 200, defect: 'a permit began with what was known of a ban before the last report' },
  { seed: 2531, tasks: 200, defect: 'a clock that was set back made a negative pace, which was no limit' },
  {
    seed: 3709,
    tasks: 200,
    defect: 'a report that came to its end during a lease was forgotten, and a ban was none for that',
  },
  {
    seed: 10591,
    tasks: 200,
    defect: 'the network was back, and no host was asked that could have told',
  },
  {
    seed: 12560,
    tasks: 200,
    defect:
      'pages died as forbidden because the report of another batch, with pages that answered, came second',
  },
  {
    seed: 14558,
    tasks: 200,
    defect: 'a host that refused at the rate of its crawl delay was asked again every second',
  },
  {
    seed: 22455,
    tasks: 200,
    jobs: 3,
    defect: 'a report that came while its coordinator ended said nothing of its hosts',
  },
  {
    seed: 527,
    tasks: 200,
    jobs: 2,
    defect:
      'a host without a limit got a request every 20 seconds, because it refused one that was sent alone',
  },
  {
    seed: 16483,
    tasks: 200,
    defect: 'of two reports at the same time the one that knew of no answer was written last',
  },
  {
    seed: 29193,
    tasks: 200,
    defect: 'the network was back, and probes asked only a host whose robots.txt is at one that is gone',
  },
  {
    seed: 39623,
    tasks: 200,
    defect:
      'an outage did not end, because the host that had failed for a reason of our own was not asked again',
  },
  {
    seed: 41060,
    tasks: 200,
    defect: 'a job with pages that do not answer took its host again and again, and another never got it',
  },
  {
    seed: 42901,
    tasks: 200,
    defect: 'a page died because it was always the one too many for a host that counts requests',
  },
  {
    seed: 900181,
    tasks: 200,
    defect:
      'a batch that was taken over hid from the next ones that the host had answered another coordinator',
  },
];

describe('pages that always fail', () => {
  const site = { healthy: 64, hosts: 2, rate: 20 };
  test.each([
    ['503', 1.5],
    ['500', 1.5],
    ['reset', 1.5],
    ['timeout', 2],
  ] as const)('by %s hold up the others of their host by less than %d times', async (sickness, most) => {
    const alone = await simulateSickPages({ ...site, sickness, sick: 0 });
    const beside = await simulateSickPages({ ...site, sickness, sick: 16 });
    expect(beside).toMatchObject({ state: 'done', served: 128, done: 128, dead: 32 });
    expect(beside.ms / alone.ms).toBeLessThanOrEqual(most);
  });

  test.each([
    ['503', 600, 1.5],
    ['500', 600, 1.5],
    ['reset', 600, 1.5],
    // Each holds one of 32 places for as long as 50 other pages.
    ['timeout', 126, 6],
  ] as const)(
    'by %s, %d of them, without a limit of the rate: by less than %d times',
    async (sickness, sick, most) => {
      const fast = { healthy: 2_400, hosts: 1, rate: 'max', latencyMs: 20 } as const;
      const alone = await simulateSickPages({ ...fast, sickness, sick: 0 });
      const beside = await simulateSickPages({ ...fast, sickness, sick });
      expect(beside).toMatchObject({ state: 'done', served: 2_400, done: 2_400, dead: sick });
      expect(beside.ms / alone.ms).toBeLessThanOrEqual(most);
    },
  );

  test('leave the others alone: none is fetched again because its report was overtaken', async () => {
    const run = await simulateSickPages({ ...site, sickness: '503', sick: 16, seed: 910_400 });
    expect(run).toMatchObject({ state: 'done', done: 128, dead: 32 });
    // A page of each host is requested again to see whether the host is down, when only sick ones are left.
    expect(run.again).toBeLessThanOrEqual(2);
  });

  test('do not take pages of half a second with them', async () => {
    const slow = { pages: 6, latencyMs: 500 };
    const run = await simulateSickPages({ ...site, sickness: 'timeout', sick: 7, slow });
    expect(run).toMatchObject({ state: 'done', done: 128, dead: 14 });
    // As above.
    expect(run.again).toBeLessThanOrEqual(2);
  });
});

describe('the simulation', () => {
  test.each(FOUND)('seed $seed: $defect', async (options) => {
    expect((await simulate({ jobs: 1, ...options })).failure).toBeNull();
  });

  test('two jobs at one host take turns, also when its permits come back before their time', async () => {
    for (let seed = 1; seed <= 4; seed++) {
      const one = { hosts: 1, rate: 2, without: FAULTS };
      expect((await simulate({ seed, tasks: 100, jobs: 2, ...one })).failure).toBeNull();
    }
  });

  test(`${SEEDS} seeds keep every invariant, and every task ends`, async () => {
    const failures: string[] = [];
    let faults = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = await simulate({ seed, tasks: TASKS });
      faults += result.faults;
      if (result.failure !== null)
        failures.push(`npm run sim -- --seed ${seed} --tasks ${TASKS}: ${result.failure}`);
    }
    expect(failures).toEqual([]);
    expect(faults).toBeGreaterThan(SEEDS);
  });

  test('with a pace for each address, the host as a whole gets no more than its rate, whatever fails', async () => {
    const failures: string[] = [];
    for (let seed = 1; seed <= 20; seed++) {
      const { failure } = await simulate({ seed, tasks: TASKS, rate: 5, perAddress: true });
      if (failure !== null) failures.push(`seed ${seed}: ${failure}`);
    }
    expect(failures).toEqual([]);
  });

  test('the same seed does the same', async () => {
    const [first, second] = [
      await simulate({ seed: 7, tasks: TASKS }),
      await simulate({ seed: 7, tasks: TASKS }),
    ];
    expect(first.failure).toBeNull();
    expect({ ...second, trace: [] }).toEqual({ ...first, trace: [] });
  });
});
