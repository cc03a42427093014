import { expect, test } from 'vitest';
import { GivenUp } from '../../../../src/coordinator/giving-up/giving-up.ts';
import { HostGroups } from '../../../../src/coordinator/hosts/host-groups.ts';
import type { Grant, PlanHost } from '../../../../src/coordinator/plan/plan-batches.ts';
import { RobotsCache } from '../../../../src/coordinator/robots/robots-cache.ts';
import { RobotsGate } from '../../../../src/coordinator/robots/robots-gate.ts';
import type { DueHost, LeasedTask, RobotsEntry } from '../../../../src/ports/store.ts';
import { batchTaskOf, jobOf } from '../../../support/coordinator/batches.ts';
import { robotsEntry, T0 } from '../../../support/fixtures.ts';

const HOST = 'a.example';
const ORIGIN = 'https://a.example';

function setup(known: RobotsEntry[] = []) {
  const job = jobOf();
  const postponed: { hostId: number; until: number }[] = [];
  const hosts = {
    robots: async (origin: string) => known.find((entry) => entry.origin === origin) ?? null,
    groupsOf: async () => new Map<string, string>(),
    noteGroups: async (_: number, groups: ReadonlyMap<string, string>) => new Map(groups),
  };
  const frontier = {
    hostsNamed: async (names: readonly string[]) => names.map((host, index) => dueHost(100 + index, host)),
    postpone: async (_: number, late: { hostId: number; until: number }[]) => void postponed.push(...late),
  };
  const robots = new RobotsCache(hosts, 'seine', job.spec.retry);
  const givenUp = new GivenUp();
  const groups = new HostGroups({ store: { hosts }, job });
  const gate = new RobotsGate({ store: { frontier }, job, robots, groups, givenUp });
  return { gate, robots, givenUp, postponed };
}

function dueHost(id: number, host: string): DueHost {
  return {
    id,
    host,
    ready: 5,
    nextAt: T0,
    crawlDelayMs: null,
    failuresInRow: 0,
    rests: 0,
    pace: null,
    ban: null,
    reachedAt: null,
  };
}

const planHost = (host: DueHost): PlanHost => ({
  ...host,
  load: { permits: 0, eased: 0, parallel: 0 },
  needsRobots: false,
});

function grantOf(hostId: number, host: string): Grant {
  const permit = { host, startAt: T0, endAt: T0 + 5_000, gapMs: 250, parallel: 1 };
  return { hostId, count: 1, nextAt: T0, permit };
}

function leased(id: number, path: string): LeasedTask {
  const { permit: _, ...task } = batchTaskOf(id, ORIGIN + path);
  return { ...task, hostId: 1 };
}

const TASKS = [leased(1, '/a'), leased(2, '/no/b')];
const RULES = 'User-agent: *\nDisallow: /no/';

test('unknown: robots.txt goes out first, once; asking: other batches of the host wait', async () => {
  const { gate, robots } = setup();
  const first = await gate.check([grantOf(1, HOST)], TASKS, T0);
  expect(first).toMatchObject({
    refused: [],
    robots: [{ origin: ORIGIN, url: `${ORIGIN}/robots.txt`, permit: 0 }],
  });
  expect(robots.isAsking(HOST)).toBe(true);
  const second = await gate.check([grantOf(1, HOST)], [leased(3, '/c')], T0);
  expect(second).toMatchObject({ refused: [{ kind: 'deferred', taskId: 3 }], robots: [] });
});

test('known: what it forbids is skipped without a request', async () => {
  const { gate } = setup([robotsEntry(ORIGIN, { text: RULES })]);
  expect(await gate.check([grantOf(1, HOST)], TASKS, T0)).toMatchObject({
    refused: [{ kind: 'skipped', taskId: 2, code: 'robots' }],
    robots: [],
  });
});

test('redirected elsewhere: the file is wanted, and asked for by a piggybacked host with the next batch', async () => {
  const url = 'https://b.example/r.txt';
  const { gate, robots } = setup([robotsEntry(ORIGIN, { text: null, redirectTo: url })]);
  const first = await gate.check([grantOf(1, HOST)], [leased(1, '/a')], T0);
  expect(first).toMatchObject({ refused: [{ kind: 'deferred', taskId: 1 }], robots: [] });
  expect(robots.wantedBy(HOST)).toEqual({ url, at: 'b.example', dueAt: T0 });
  const [planned, ...others] = await gate.withPiggybackedHosts(
    [planHost(dueHost(1, HOST))],
    T0 + 1,
    planHost,
  );
  expect(others).toEqual([]);
  expect(planned).toMatchObject({ host: HOST, ready: 1, piggybackedHost: { host: 'b.example' } });
  const grants = [
    grantOf(1, HOST),
    { ...grantOf(100, 'b.example'), piggybackedHost: planned!.piggybackedHost! },
  ];
  expect(await gate.check(grants, [leased(1, '/a')], T0)).toMatchObject({
    refused: [],
    robots: [{ origin: ORIGIN, url, permit: 1, for: 0 }],
  });
});

test('unreachable, and given up: tasks fail without a request', async () => {
  const url = 'https://b.example/r.txt';
  const { gate, givenUp } = setup([
    robotsEntry(ORIGIN, { text: null, redirectTo: url }),
    { ...robotsEntry(url, { text: null, failures: 99, detail: 'status 500' }), origin: url },
  ]);
  const failedWith = async () => (await gate.check([grantOf(1, HOST)], [leased(1, '/a')], T0)).refused;
  expect(await failedWith()).toMatchObject([{ kind: 'failed', code: 'robots-unreachable' }]);
  givenUp.add({ place: HOST, code: 'host-down', detail: 'd' });
  expect(await failedWith()).toMatchObject([{ kind: 'failed', code: 'host-down' }]);
});

test('a host whose file elsewhere failed a moment ago is put off until the backoff is over', async () => {
  const url = 'https://b.example/r.txt';
  const { gate } = setup([
    robotsEntry(ORIGIN, { text: null, redirectTo: url }),
    { ...robotsEntry(url, { text: null, failures: 1 }), origin: url },
  ]);
  const { late, refused } = await gate.check([grantOf(1, HOST)], TASKS, T0);
  expect(late).toEqual([{ hostId: 1, until: T0 + jobOf().spec.retry.baseMs }]);
  expect(refused.map(({ kind }) => kind)).toEqual(['deferred', 'deferred']);
});
