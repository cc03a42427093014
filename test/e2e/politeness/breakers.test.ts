import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { lastJson, startSeine, temporaryFolder } from '../../support/seine-process.ts';
import { openRawOrigin, type RawOrigin, reply } from '../../support/servers/raw-origin.ts';

const folder = temporaryFolder();
const at = (...parts: string[]) => join(folder.path, ...parts);
afterAll(() => folder.remove());

/** A host that is dead until it is told to be well; every request is noted. */
async function openPatient(pages: number): Promise<RawOrigin & { times: number[]; recover(): void }> {
  let dead = true;
  const times: number[] = [];
  const handlers = Object.fromEntries(
    Array.from({ length: pages }, (_, page) => [
      `/${page}`,
      (socket: Socket) => {
        times.push(performance.now());
        if (dead) socket.resetAndDestroy();
        else socket.write(reply('200 OK', ['Content-Type: text/html'], `<h1>page ${page}</h1>`));
      },
    ]),
  );
  const origin = await openRawOrigin(handlers);
  return {
    ...origin,
    times,
    recover() {
      dead = false;
    },
  };
}

function writeJob(name: string, urls: string[], job: object): string[] {
  writeFileSync(at(`${name}.txt`), urls.join('\n'));
  writeFileSync(
    at(`${name}.json`),
    JSON.stringify({
      name,
      sources: [{ file: at(`${name}.txt`) }],
      allowPrivate: true,
      politeness: { rate: 'max', parallel: 4, robots: false, adaptive: false },
      retry: { attempts: 50, baseMs: 20, maxMs: 100 },
      ...job,
    }),
  );
  return ['run', at(`${name}.json`), '--dir', at(name), '--workers', '1', '--json'];
}

test('a dead host gets only probes, further and further apart, and recovers with one success', async () => {
  const PAGES = 30;
  const REST_MS = 1_000;
  const host = await openPatient(PAGES);
  const urls = Array.from({ length: PAGES }, (_, page) => `${host.url}/${page}`);
  const breaker = { hostFailures: 5, hostRestMs: REST_MS, hostProbes: 10, jobBatches: 1_000 };
  const run = startSeine(writeJob('probed', urls, { breaker }));
  // What was out when the breaker opened, then three probes: after 1, 2 and 4 seconds.
  const gaps = () => host.times.slice(1).map((time, index) => time - host.times[index]!);
  const rests = () => gaps().filter((gap) => gap > REST_MS * 0.8);
  await expect.poll(() => rests().length).toBe(3);
  host.recover();
  const { code, stdout, stderr } = await run.finished;
  await host.close();
  expect([code, stderr]).toEqual([0, '']);
  expect(lastJson({ code, stdout, stderr, signal: null })).toMatchObject({
    state: 'done',
    done: PAGES,
    dead: 0,
  });
  // Each is twice the one before, as far as this busy process can tell.
  const [third, second] = rests().toSorted((one, other) => other - one);
  expect(second).toBeGreaterThanOrEqual(REST_MS * 1.5);
  expect(third).toBeGreaterThanOrEqual(REST_MS * 3);
  // Between two rests there is one request; before the first no more than one batch.
  const firstRestAt = gaps().findIndex((gap) => gap > REST_MS * 0.8);
  expect(firstRestAt).toBeLessThanOrEqual(PAGES);
  const afterFirst = gaps().slice(firstRestAt);
  expect(afterFirst.slice(0, 3).every((gap) => gap > REST_MS * 0.8)).toBe(true);
});

test('batches that fail wholly stop the job with its own exit code, and resume continues', async () => {
  const PAGES = 40;
  const host = await openPatient(PAGES);
  const urls = Array.from({ length: PAGES }, (_, page) => `${host.url}/${page}`);
  const breaker = { hostFailures: 1_000, jobBatches: 3 };
  const args = writeJob('tripped', urls, { breaker, batchSize: 5 });
  const first = await seine(args.filter((arg) => arg !== '--json'));
  expect(first.code).toBe(4);
  expect(first.stderr).toMatch(
    /tripped-1 stopped: \d+ batches in a row failed completely; `seine resume` continues it/,
  );
  const status = await seine(['status', 'tripped', '--dir', at('tripped'), '--json']);
  expect(JSON.parse(status.stdout)).toMatchObject({
    state: 'tripped',
    done: 0,
    dead: 0,
    pending: PAGES,
    leased: 0,
  });

  host.recover();
  const resumed = await seine(['resume', 'tripped', '--dir', at('tripped'), '--json']);
  await host.close();
  expect(resumed.code).toBe(0);
  expect(lastJson(resumed)).toMatchObject({ state: 'done', done: PAGES, dead: 0, pending: 0 });
});
