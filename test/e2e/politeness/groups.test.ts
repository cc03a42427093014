import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TaskRow } from '../../../src/core/model.ts';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';
import { type AddressLog, openAddressLog } from '../../support/servers/address-log.ts';
import { mostMsBetween } from '../../support/servers/arrivals.ts';

const RATE = 5;
const GAP_MS = 1_000 / RATE;
let folder: ReturnType<typeof temporaryFolder>;
let sites: AddressLog[];

beforeEach(async () => {
  folder = temporaryFolder();
  sites = [];
  for (const redirect of [true, false]) {
    const site = await openAddressLog({
      answer: (request, response) => {
        if (!redirect || !request.url?.startsWith('/moved')) return false;
        response
          .writeHead(302, { location: `${sites[1]!.url}${request.url.replace('moved', 'page')}` })
          .end();
        return true;
      },
    });
    sites.push(site);
  }
});

afterEach(async () => {
  for (const site of sites) await site.close();
  folder.remove();
});

const run = (job: object, ...more: string[]) => {
  const file = join(folder.path, 'job.json');
  const politeness = { rate: RATE, adaptive: false, groupBy: 'address' };
  writeFileSync(file, JSON.stringify({ name: 'groups', allowPrivate: true, politeness, ...job }));
  return seine(['run', file, '--workers', '2', '--dir', join(folder.path, 'seine'), '--json', ...more]);
};

/**
 * Between two requests, whichever of the hosts they went to; no less than it was. Hosts that do not share their rate are
 * asked three times as often, which is well below half of the gap.
 */
const meanGapMs = () => {
  const all = sites.flatMap(({ requests }) => requests).sort((one, other) => one.at - other.at);
  return mostMsBetween(all[0]!, all.at(-1)!) / (all.length - 1);
};

test('hosts at one address share its rate, by whatever name or port, also after redirects and in the next pass', async () => {
  const [one, two] = sites as [AddressLog, AddressLog];
  const sources = Array.from({ length: 3 }, (_, n) => [
    `${one.url}/page/${n}`,
    `http://localhost:${one.port}/page/${n}`,
    `${one.url}/moved/${n}`,
  ]).flat();
  sources.push(...Array.from({ length: 3 }, (_, n) => `${two.url}/other/${n}`));
  const first = await run({ sources });
  expect(first.stderr).toBe('');
  expect(lastJson(first)).toMatchObject({ state: 'done', done: 12, dead: 0 });
  expect(meanGapMs()).toBeGreaterThan(GAP_MS * 0.5);
  const dir = ['--dir', join(folder.path, 'seine')];
  const hosts = jsonLines((await seine(['hosts', '--json', ...dir])).stdout);
  expect(hosts.map(({ host }) => host)).toEqual(['ip:127.0.0.1']);
  expect(hosts[0]?.robots).toHaveLength(3);
  expect(hosts[0]?.smallestGapMs).toBeGreaterThanOrEqual(GAP_MS);

  for (const { requests } of sites) requests.length = 0;
  expect(lastJson(await run({ sources }, '--refresh'))).toMatchObject({ state: 'done', pass: 2 });
  expect(sites.flatMap(({ requests }) => requests).length).toBeGreaterThanOrEqual(15);
  expect(meanGapMs()).toBeGreaterThan(GAP_MS * 0.5);
  expect(jsonLines((await seine(['hosts', '--json', ...dir])).stdout)).toHaveLength(1);
});

test('of hosts that are counted together, only the dead one is given up', async () => {
  const [one, two] = sites as [AddressLog, AddressLog];
  await two.close();
  sites.pop();
  const sources = [
    ...Array.from({ length: 40 }, (_, n) => `${two.url}/dead/${n}`),
    ...Array.from({ length: 10 }, (_, n) => `${one.url}/alive/${n}`),
  ];
  const politeness = { rate: 200, adaptive: false, groupBy: 'address' };
  const retry = { attempts: 6, baseMs: 10, maxMs: 20 };
  const breaker = { hostFailures: 3, hostRestMs: 20, hostProbes: 2 };
  for (const robots of [false, true]) {
    const spec = { sources, politeness: { ...politeness, robots }, retry, breaker, batchSize: 2 };
    expect(lastJson(await run(spec, '--fresh'))).toMatchObject({ state: 'done', done: 10, dead: 40 });
    const rows = await seine(['export', '--what', 'tasks', '--dir', join(folder.path, 'seine')]);
    const codes = jsonLines<TaskRow>(rows.stdout).map(({ failureCode }) => failureCode);
    expect(codes).toContain(robots ? 'robots-unreachable' : 'host-down');
  }
});
