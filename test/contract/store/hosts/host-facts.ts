import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { HostProfile } from '../../../../src/core/calibration/host-profile.ts';
import { ChainCheck } from '../../../../src/core/host-log/check-chain.ts';
import { calibrationEntry, rowOf, textOf } from '../../../../src/core/host-log/host-log.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  hostChange,
  leaseOne,
  robotsEntry,
  T0,
  tasksOf,
} from '../../../support/fixtures.ts';
import { A, B, type StoreSetup } from '../store-setup.ts';

const PACE = { rate: 2.5, clean: 2.5, refused: 3, tryAt: T0 + 60_000, refusals: 1, latencyMs: 41.5 };

const BAN = {
  ...{ known: { url: 'https://a.example/1', at: T0 }, refusals: 3, tolerated: 3 },
  ...{ since: T0, rests: 2, restUntil: T0 + 40_000 },
};

const profileAt = (host: string, rate: number): HostProfile => ({
  ...{ host, rate, parallel: 2, batchSize: 100, timeoutMs: 3_000, batchTimeoutMs: 60_000 },
  ...{ requests: 500, refusals: 4, refusedRate: 9.5, windowMs: 0, end: 'held' },
  ...{ measuredAt: T0, expiresAt: T0 + 1_000, evidence: [] },
});

/** What is remembered of hosts besides their tasks. */
export function testHostFacts(setup: StoreSetup): void {
  const { add, due, hostsDue, settle, reopen } = setup;

  describe('facts of hosts', () => {
    test('the pace that was learned comes back with the host, and null leaves it', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      expect((await due())[0]?.pace).toBeNull();
      const first = await leaseOne(setup.store, setup.job, { count: 1 });
      await settle(first.id, [change.fetched(first.tasks[0]!.id)], {
        hosts: [hostChange('a.example', { pace: PACE })],
      });
      const second = await leaseOne(setup.store, setup.job, { count: 1 });
      await settle(second.id, [change.fetched(second.tasks[0]!.id)], { hosts: [hostChange('a.example')] });
      await reopen();
      expect((await due())[0]?.pace).toEqual(PACE);
    });

    test('a ban, and when the host was last reached, come back with it, for every job, and null leaves it', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      expect((await due())[0]).toMatchObject({ ban: null, reachedAt: null });
      const first = await leaseOne(setup.store, setup.job, { count: 1 });
      await settle(first.id, [change.fetched(first.tasks[0]!.id)], {
        hosts: [hostChange('a.example', { ban: BAN, reachedAt: T0 + 7 })],
      });
      const second = await leaseOne(setup.store, setup.job, { count: 1 });
      await settle(second.id, [change.fetched(second.tasks[0]!.id)], { hosts: [hostChange('a.example')] });
      const other = await createJob(setup.store, 'other');
      await enqueue(setup.store, other, tasksOf(`${A}/1`));
      await reopen();
      const [host] = await setup.store.frontier.dueHosts(other.id, { now: T0, before: T0 + 1e6, limit: 9 });
      expect(host).toMatchObject({ ban: BAN, reachedAt: T0 + 7 });
      expect((await collect(setup.store.hosts.list(setup.job.id)))[0]!.ban).toEqual(BAN);
      await add(`${B}/1`);
      const all = await setup.store.hosts.listAfter({ after: '', limit: 9 });
      expect(all).toMatchObject([
        { host: 'a.example', ban: BAN },
        { host: 'b.example', ban: null, requests: 0 },
      ]);
      expect(await setup.store.hosts.listAfter({ after: 'a.example', limit: 9 })).toEqual([all[1]]);
    });

    test('a lease has its hosts as they stand, not as they were when they were due', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job, { count: 1 });
      const [due] = await setup.store.frontier.dueHosts(setup.job.id, { now: T0, before: T0, limit: 9 });
      const hosts = [hostChange('a.example', { failuresInRow: 2, ban: BAN, reachedAt: T0 })];
      const robots = [robotsEntry(A, { text: 'User-agent: *', crawlDelayMs: 2_000 })];
      await settle(id, [change.fetched(tasks[0]!.id)], { hosts, robots });
      const grants = [{ hostId: due!.id, count: 1, nextAt: T0 }];
      const [batch] = await setup.store.frontier.lease(setup.job.id, {
        batches: [{ grants, leaseMs: 1_000 }],
        now: T0,
      });
      expect(due!.ban).toBeNull();
      expect(batch!.hosts).toMatchObject([
        { id: due!.id, crawlDelayMs: 2_000, failuresInRow: 2, ban: BAN, reachedAt: T0 },
      ]);
    });

    test('a host that is put off is not due before, for this job alone', async () => {
      await add(`${A}/1`, `${B}/1`);
      const other = await createJob(setup.store, 'other');
      await enqueue(setup.store, other, tasksOf(`${A}/1`));
      const host = (await due()).find((each) => each.host === 'a.example')!;
      await setup.store.frontier.postpone(setup.job.id, [{ hostId: host.id, until: T0 + 1_000 }]);
      expect(await hostsDue({ before: T0 + 999 })).toEqual(['b.example']);
      expect((await hostsDue({ before: T0 + 1_000 })).sort()).toEqual(['a.example', 'b.example']);
      const others = await setup.store.frontier.dueHosts(other.id, { now: T0, before: T0, limit: 9 });
      expect(others.map((each) => each.host)).toEqual(['a.example']);
    });

    test('all hosts of a job are listed by name, with what is known of them', async () => {
      await add(`${B}/1`, `${A}/1`, `${A}/2`);
      await createJob(setup.store, 'other').then((job) =>
        enqueue(setup.store, job, tasksOf('https://c.example/')),
      );
      const { id, tasks } = await leaseOne(setup.store, setup.job, { count: 1 });
      const lastError = { at: T0, code: 'throttled', detail: 'status 429' };
      await settle(id, [change.fetched(tasks[0]!.id)], {
        hosts: [
          hostChange('a.example', { sent: 3, nextAt: T0 + 500, pace: PACE, smallestGapMs: 250.5, lastError }),
        ],
        robots: [robotsEntry('https://a.example', { text: 'User-agent: *', crawlDelayMs: 2_000 })],
      });
      const facts = await collect(setup.store.hosts.list(setup.job.id));
      expect(facts.map(({ host }) => host)).toEqual(['a.example', 'b.example']);
      expect(facts[0]).toMatchObject({
        requests: 3,
        nextAt: T0 + 500,
        pace: PACE,
        smallestGapMs: 250.5,
        lastError,
        robots: [{ origin: 'https://a.example', text: 'User-agent: *', crawlDelayMs: 2_000 }],
      });
      expect(facts[1]).toMatchObject({
        requests: 0,
        pace: null,
        smallestGapMs: null,
        lastError: null,
        robots: [],
      });
    });

    test('what waits at a host is counted, with the reason and the time of the next', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`, `${B}/1`);
      const { id, tasks } = await leaseOne(setup.store, setup.job, { count: 3 });
      await settle(id, [
        change.again(tasks[0]!.id, T0 + 9_000),
        { ...change.deferred(tasks[1]!.id), dueAt: T0 + 5_000 },
        change.fetched(tasks[2]!.id),
      ]);
      const [a, b] = await collect(setup.store.hosts.list(setup.job.id));
      expect(a).toMatchObject({ ready: 0, waiting: { count: 2, until: T0 + 5_000, code: null } });
      expect(b).toMatchObject({ ready: 1, waiting: null });
    });

    test('a profile is kept with the pace that follows from it, also of a host that no job has', async () => {
      await add(`${A}/1`);
      await setup.store.hosts.saveProfile(profileAt('new.example', 3), PACE);
      await setup.store.hosts.saveProfile(profileAt('a.example', 3), PACE);
      await setup.store.hosts.saveProfile(profileAt('a.example', 7), null);
      const [facts] = await collect(setup.store.hosts.list(setup.job.id));
      expect(facts).toMatchObject({ host: 'a.example', pace: PACE, profile: profileAt('a.example', 7) });
      const [fresh] = await setup.store.frontier.hostsNamed(['new.example']);
      expect(fresh?.pace).toEqual(PACE);
      expect((await setup.store.hosts.profiles(10)).map(({ host }) => host).sort()).toEqual([
        'a.example',
        'new.example',
      ]);
      expect(await setup.store.hosts.profiles(1)).toHaveLength(1);
    });

    test('the log of a host is a chain over settles, losses and restarts, and a late report adds nothing', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      const log = (n: number) => JSON.stringify({ host: 'a.example', n, text: 'é "quoted" \\ 😀' });
      const first = await leaseOne(setup.store, setup.job, { count: 1 });
      const hosts = [hostChange('a.example', { log: log(1) })];
      await settle(first.id, [change.fetched(first.tasks[0]!.id)], { hosts });
      await settle(first.id, [change.fetched(first.tasks[0]!.id)], { hosts });
      await reopen();
      const second = await leaseOne(setup.store, setup.job, { count: 1 });
      const logs = [{ host: 'a.example', text: log(2) }];
      await setup.store.frontier.release(second.id, { now: T0, blame: 'worker', reason: 'died', logs });
      await setup.store.frontier.release(second.id, { now: T0, blame: 'worker', reason: 'died', logs });
      await setup.store.hosts.appendLogs([{ host: 'a.example', text: log(3) }]);
      const entries = await setup.store.hosts.logStep('a.example', { after: 0, limit: 10 });
      expect(entries.map(({ text }) => text)).toEqual([1, 2, 3].map(log));
      let previous = '0'.repeat(64);
      for (const [index, entry] of entries.entries()) {
        expect(entry).toMatchObject({ number: index + 1, previous: index === 0 ? null : previous });
        expect(entry.hash).toBe(createHash('sha256').update(previous).update(entry.text).digest('hex'));
        previous = entry.hash;
      }
      expect(await setup.store.hosts.logStep('a.example', { after: 1, limit: 1 })).toEqual([entries[1]]);
      expect(await setup.store.hosts.logStep('never.example', { after: 0, limit: 1 })).toEqual([]);
    });

    test('a log that grows gets checkpoints, is cut at one that is old, and stays a chain that can be checked', async () => {
      await add(`${A}/1`);
      const { hosts } = setup.store;
      const DAY = 86_400_000;
      const entry = (day: number, requests: number) =>
        textOf(calibrationEntry({ now: T0 + day * DAY, host: 'a.example', requests, refusals: 1 }));
      const checkpoint = (day: number) =>
        setup.store.hosts.checkpointLog('a.example', { now: T0 + day * DAY, keepMs: 10 * DAY, entries: 3 });
      const checked = async () => {
        const rows = (await setup.store.hosts.logStep('a.example', { after: 0, limit: 100 })).map(rowOf);
        const check = new ChainCheck();
        for (const row of rows) check.add(row);
        return { kinds: rows.map(({ number, kind }) => `${number} ${kind}`), rows, ...check.finish() };
      };
      expect(await checkpoint(0)).toEqual({ isWritten: false, cut: 0 });
      expect(await hosts.checkpointLog('never.example', { now: T0, keepMs: 0 })).toMatchObject({ cut: 0 });
      for (const day of [0, 1]) await hosts.appendLogs([{ host: 'a.example', text: entry(day, 10) }]);
      expect(await checkpoint(1)).toEqual({ isWritten: false, cut: 0 });
      await hosts.appendLogs([{ host: 'a.example', text: entry(2, 10) }]);
      expect(await checkpoint(2)).toEqual({ isWritten: true, cut: 0 });
      // Of a look that comes twice, the second finds nothing to do.
      expect(await checkpoint(2)).toEqual({ isWritten: false, cut: 0 });
      for (const day of [3, 4, 12.5]) await hosts.appendLogs([{ host: 'a.example', text: entry(day, 5) }]);
      const whole = await checked();
      expect(whole.rows[3]!.before).toMatchObject({
        entries: 3,
        requests: 30,
        refusals: 3,
        hash: whole.rows[2]!.hash,
      });
      expect(await checkpoint(12.5)).toEqual({ isWritten: true, cut: 3 });
      await reopen();
      const cut = await checked();
      expect(cut.kinds).toEqual([
        ...['4 checkpoint', '5 calibration', '6 calibration', '7 calibration', '8 checkpoint'],
      ]);
      expect(cut).toMatchObject({
        faults: [],
        requests: 15,
        cut: { hosts: 1, entries: 3, requests: 30, refusals: 3 },
      });
      expect(cut.rows[0]).toEqual(whole.rows[3]);
      expect(cut.rows[4]!.before).toMatchObject({ entries: 7, requests: 45, refusals: 6 });
      // It goes on as it was.
      await setup.store.hosts.appendLogs([{ host: 'a.example', text: entry(13, 1) }]);
      expect(await checked()).toMatchObject({ faults: [], entries: 6 });
      // The last checkpoint stays, however old it is: a chain never ends up empty.
      expect(await checkpoint(500)).toEqual({ isWritten: false, cut: 4 });
      expect((await checked()).kinds).toEqual(['8 checkpoint', '9 calibration']);
      expect((await checked()).faults).toEqual([]);
    });

    test('the time between the requests of two permits counts as a gap, also after a restart', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`, `${A}/4`, `${A}/5`);
      const gaps: (number | null)[] = [];
      for (const [from, to, own] of [
        [T0 + 0.5, T0 + 900.5, null],
        [T0 + 1_400.5, T0 + 1_400.5, null],
        [T0 + 1_000, T0 + 1_100, null],
        [T0 + 2_000.5, T0 + 2_900, 300],
        [T0 + 3_150, T0 + 3_150, null],
      ] as const) {
        const { id, tasks } = await leaseOne(setup.store, setup.job, { count: 1 });
        const hosts = [hostChange('a.example', { smallestGapMs: own, span: { from, to } })];
        await settle(id, [change.fetched(tasks[0]!.id)], { hosts });
        await reopen();
        gaps.push((await collect(setup.store.hosts.list(setup.job.id)))[0]!.smallestGapMs);
      }
      // The third came late: it was before the second, and says nothing.
      expect(gaps).toEqual([null, 500, 500, 300, 250]);
    });

    test('the smallest gap only ever gets smaller, and the last error stays until the next', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`, `${A}/4`);
      const lastError = { at: T0, code: 'reset', detail: 'cut' };
      for (const more of [
        { smallestGapMs: 300, lastError },
        { smallestGapMs: 200 },
        { smallestGapMs: 400 },
        {},
      ]) {
        const { id, tasks } = await leaseOne(setup.store, setup.job, { count: 1 });
        await settle(id, [change.fetched(tasks[0]!.id)], { hosts: [hostChange('a.example', more)] });
      }
      const [facts] = await collect(setup.store.hosts.list(setup.job.id));
      expect(facts).toMatchObject({ smallestGapMs: 200, lastError });
    });
  });
}
