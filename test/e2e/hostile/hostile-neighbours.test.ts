import { afterAll, beforeAll, expect, test } from 'vitest';
import { pathOf } from '../../../src/sites/hostile/behaviour.ts';
import { BEHAVIOURS } from '../../../src/sites/hostile/behaviours.ts';
import { type HostileProcess, startHostileProcess } from '../../support/hostile/hostile-process.ts';
import { shareKept } from '../../support/hostile/hostile-visits.ts';
import { startHostileWorker } from '../../support/hostile/hostile-worker.ts';
import { crawlGoodHost, stallingUrls } from '../../support/runs/neighbours-run.ts';

/**
 * Hosts that mean well do not wait for those that do not. What they lose to them is measured by `npm run speeds` and
 * `scripts/measure/hostile.ts`; the bounds here are far from that, and far from what waiting would cost.
 */

let hostile: HostileProcess;

beforeAll(async () => {
  // On all loopback addresses, each of which is a host.
  hostile = await startHostileProcess({ host: '0.0.0.0' });
});

afterAll(() => hostile.close());

/** One case of each behaviour. */
const FIRST_OF_EACH = BEHAVIOURS.map((behaviour) => pathOf(behaviour) + behaviour.cases[0]!.path);

test('within a worker, a good host is served beside each behaviour', async () => {
  const good = await startHostileProcess();
  const worker = await startHostileWorker();
  // Fails by itself when one page of the good host does.
  const facts = await worker.measure({
    good: good.url,
    hostile: hostile.url,
    bases: FIRST_OF_EACH,
    pages: 250,
  });
  console.log(JSON.stringify({ ...facts, kept: shareKept(facts) }));
  expect(facts.beside.length).toBeGreaterThanOrEqual(5);
  expect(shareKept(facts)).toBeGreaterThanOrEqual(0.25);
  expect(await worker.close()).toEqual({ code: 0, stderr: '' });
  await good.close();
});

const PAGES = 60;
const RATE = 20;
const STALLING_HOSTS = 40;

test(`in a run, a good host does not wait for ${STALLING_HOSTS} that stall`, async () => {
  const others = stallingUrls(hostile.url, STALLING_HOSTS);
  const facts = await crawlGoodHost({ pages: PAGES, rate: RATE, others });
  console.log(JSON.stringify(facts));
  expect(facts).toMatchObject({ requests: PAGES, othersLeft: true });
  // It has 20 a second to itself; in turns with the others it would have less than one.
  expect(facts.rate).toBeGreaterThanOrEqual(RATE / 6);
});
