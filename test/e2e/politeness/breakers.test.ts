import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { AttemptRow } from '../../../src/core/model.ts';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';
import { openRawOrigin, reply } from '../../support/servers/raw-origin.ts';

const folder = temporaryFolder();
const at = (...parts: string[]) => join(folder.path, ...parts);
afterAll(() => folder.remove());

/** A host that is dead until it is told to be well, or has been asked so often. */
async function openPatient(pages: number, deadFor = Number.POSITIVE_INFINITY) {
  let left = deadFor;
  const handlers = Object.fromEntries(
    Array.from({ length: pages }, (_, page) => [
      `/${page}`,
      (socket: Socket) => {
        if (left-- > 0) socket.resetAndDestroy();
        else socket.write(reply('200 OK', ['Content-Type: text/html'], `<h1>page ${page}</h1>`));
      },
    ]),
  );
  const origin = await openRawOrigin(handlers);
  return {
    ...origin,
    recover() {
      left = 0;
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
  const REST_MS = 300;
  const PROBES = 3;
  // Each page once before the breaker opens, then probes: the first three fail.
  const host = await openPatient(PAGES, PAGES + PROBES);
  const urls = Array.from({ length: PAGES }, (_, page) => `${host.url}/${page}`);
  const breaker = { hostFailures: 5, hostRestMs: REST_MS, hostProbes: 10, jobBatches: 1_000 };
  const run = await seine(writeJob('probed', urls, { breaker }));
  await host.close();
  expect([run.code, run.stderr]).toEqual([0, '']);
  expect(lastJson(run)).toMatchObject({ state: 'done', done: PAGES, dead: 0 });
  const rows = await seine(['export', 'probed', '--what', 'attempts', '--dir', at('probed')]);
  const attempts = jsonLines<AttemptRow>(rows.stdout).sort(
    (one, other) => Date.parse(one.startedAt) - Date.parse(other.startedAt),
  );
  expect(attempts).toHaveLength(PAGES + PROBES + PAGES);
  expect(attempts.findIndex(({ outcome }) => outcome !== 'failed')).toBe(PAGES + PROBES);
  // The last request before the first rest, three probes that fail, and one that does not.
  const probes = attempts.slice(PAGES - 1, PAGES + PROBES + 1);
  for (const [index, probe] of probes.entries()) {
    if (index === 0) continue;
    expect(attempts.filter(({ batch }) => batch === probe.batch)).toEqual([probe]);
    // By the clocks of those who send, of which each thread has its own. A machine that is slow only waits longer.
    const waitedMs = Date.parse(probe.startedAt) - Date.parse(probes[index - 1]!.startedAt);
    expect(waitedMs).toBeGreaterThanOrEqual(REST_MS * 2 ** (index - 1) - 10);
  }
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
