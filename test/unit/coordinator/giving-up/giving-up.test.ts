import { expect, test } from 'vitest';
import { FAIL_STEP, failTasksOfHost, GivenUp } from '../../../../src/coordinator/giving-up/giving-up.ts';

test('what was given up is refused by its host, or by its origin where only robots.txt is missing', () => {
  const givenUp = new GivenUp();
  expect(givenUp.reasonFor('https://a.example/1')).toBeNull();
  givenUp.add({ place: 'a.example', code: 'host-down', detail: '6 probes failed' });
  givenUp.add({ place: 'https://b.example', code: 'robots-unreachable', detail: 'status 500' });
  expect(givenUp.reasonFor('http://a.example/1')).toEqual({ code: 'host-down', detail: '6 probes failed' });
  expect(givenUp.reasonFor('https://b.example/1')).toMatchObject({ code: 'robots-unreachable' });
  expect(givenUp.reasonFor('http://b.example/1')).toBeNull();
  expect(givenUp.reasonFor('https://a.example:8443/1')).toBeNull();
  // Another run, of this job or another in the same process, begins with nothing.
  expect(new GivenUp().reasonFor('http://a.example/1')).toBeNull();
});

test('other work goes on while the tasks of a host are given up', async () => {
  let left = 3 * FAIL_STEP + 1;
  let turns = 0;
  const turnsBefore: number[] = [];
  const warned: unknown[] = [];
  const count = () => {
    turns++;
    if (left > 0) setImmediate(count);
  };
  count();
  await failTasksOfHost(
    {
      store: {
        frontier: {
          async failTasksOfHost(_, { limit }) {
            turnsBefore.push(turns);
            const failed = Math.min(limit, left);
            left -= failed;
            return failed;
          },
        },
      },
      job: { id: 1 },
      clock: { now: () => 0 },
      logger: { warn: (_, fields) => void warned.push(fields) },
    },
    { host: 'a.example', code: 'host-down', detail: '6 probes failed' },
  );
  expect(warned).toEqual([{ tasks: 3 * FAIL_STEP + 1, code: 'host-down' }]);
  // The last step found none, and came at once.
  expect(new Set(turnsBefore).size).toBe(4);
});
