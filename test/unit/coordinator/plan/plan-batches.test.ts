import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OpenPermits } from '../../../../src/coordinator/hosts/open-permits.ts';
import {
  type PlanInput,
  type PlannedBatch,
  planBatches,
} from '../../../../src/coordinator/plan/plan-batches.ts';
import { NO_BAN } from '../../../../src/core/bans/bans.ts';
import type { Permit } from '../../../../src/core/batch/batch.ts';
import { guardedGapMs } from '../../../../src/core/politeness/permits.ts';

type PlanHost = PlanInput['hosts'][number];

const NOW = 1_700_000_000_000;

function hostOf(id: number, change: Partial<PlanHost> = {}): PlanHost {
  return {
    id,
    host: `h${id}.example`,
    ready: 1_000,
    nextAt: 0,
    crawlDelayMs: null,
    failuresInRow: 0,
    rests: 0,
    pace: null,
    ban: null,
    reachedAt: null,
    load: { permits: 0, eased: 0, parallel: 0 },
    needsRobots: false,
    ...change,
  };
}

function inputOf(hosts: PlanHost[], change: Partial<PlanInput> = {}): PlanInput {
  return {
    now: NOW,
    hosts,
    slots: 16,
    workers: 2,
    batchSize: 60,
    openBatchSize: change.batchSize ?? 60,
    gapMs: 250,
    parallel: 4,
    probeAfter: 10,
    openMs: 90_000,
    tasksLeft: Number.POSITIVE_INFINITY,
    ...change,
  };
}

const grantsOf = (batches: PlannedBatch[]) => batches.flatMap((batch) => batch.grants);
const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);

const host = fc.record({
  ready: fc.integer({ min: 1, max: 200 }),
  nextAt: fc.integer({ min: NOW - 500, max: NOW + 400 }),
  crawlDelayMs: fc.option(fc.integer({ min: 1, max: 60_000 })),
  failuresInRow: fc.nat(12),
  permits: fc.nat(5),
  parallel: fc.nat(5),
});

const input: fc.Arbitrary<PlanInput> = fc
  .record({
    hosts: fc.array(host, { maxLength: 40 }),
    slots: fc.nat(20),
    workers: fc.integer({ min: 1, max: 8 }),
    batchSize: fc.integer({ min: 1, max: 80 }),
    more: fc.nat(200),
    gapMs: fc.oneof(fc.constant(0), fc.double({ min: 0.01, max: 20_000, noNaN: true })),
    parallel: fc.integer({ min: 1, max: 40 }),
    tasksLeft: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.nat(100)),
  })
  .map(({ hosts, more, ...rest }) =>
    inputOf(
      hosts.map(({ permits, parallel, ...each }, index) => {
        // What is out never exceeds the limit, and each permit out has at least one request at once.
        const out = Math.min(permits, rest.parallel);
        const load = { permits: out, eased: 0, parallel: Math.min(Math.max(parallel, out), rest.parallel) };
        return hostOf(index, { ...each, load: out === 0 ? { permits: 0, eased: 0, parallel: 0 } : load });
      }),
      { ...rest, openBatchSize: rest.batchSize + more },
    ),
  );

describe('planBatches', () => {
  test('never grants more than hosts, batches, slots and the page limit allow', () => {
    fc.assert(
      fc.property(input, (plan) => {
        const batches = planBatches(plan);
        const grants = grantsOf(batches);
        expect(batches.length).toBeLessThanOrEqual(plan.slots);
        expect(sum(grants.map((grant) => grant.count))).toBeLessThanOrEqual(plan.tasksLeft);
        for (const batch of batches) {
          expect(batch.grants.length).toBeGreaterThan(0);
          expect(batch.size).toBe(sum(batch.grants.map((grant) => grant.count)));
          const isPaced = batch.grants.some(({ permit }) => permit.gapMs > 0);
          expect(batch.size).toBeLessThanOrEqual(isPaced ? plan.batchSize : plan.openBatchSize);
          expect(new Set(batch.grants.map((grant) => grant.hostId)).size).toBe(batch.grants.length);
        }
        for (const each of plan.hosts) {
          const mine = grants.filter((grant) => grant.hostId === each.id);
          for (const { count, permit } of mine) {
            expect(count).toBeGreaterThanOrEqual(1);
            expect(Number.isInteger(count)).toBe(true);
            expect(permit.parallel).toBeGreaterThanOrEqual(1);
            expect(permit.host).toBe(each.host);
            expect(permit.startAt).toBeGreaterThanOrEqual(Math.max(plan.now, each.nextAt));
          }
          expect(sum(mine.map((grant) => grant.count))).toBeLessThanOrEqual(each.ready);
          if (mine.length > 0) {
            expect(sum(mine.map((grant) => grant.permit.parallel)) + each.load.parallel).toBeLessThanOrEqual(
              plan.parallel,
            );
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test('a paced host gets one permit at a time, long enough for its requests, and is taken until its end', () => {
    fc.assert(
      fc.property(input, (plan) => {
        const grants = grantsOf(planBatches(plan));
        for (const each of plan.hosts) {
          const gapMs = guardedGapMs(plan.gapMs, each.crawlDelayMs);
          const mine = grants.filter((grant) => grant.hostId === each.id);
          if (gapMs === 0) continue;
          expect(mine.length).toBeLessThanOrEqual(1);
          for (const { permit, count, nextAt } of mine) {
            expect(permit.gapMs).toBeGreaterThanOrEqual(Math.max(plan.gapMs, each.crawlDelayMs ?? 0));
            expect(permit.endAt - permit.startAt).toBeGreaterThanOrEqual(count * permit.gapMs);
            expect(nextAt).toBeGreaterThanOrEqual(permit.endAt);
            expect(each.load.permits).toBeLessThan(2);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test('a failing host is probed with one task, and only when nothing else is out', () => {
    fc.assert(
      fc.property(input, (plan) => {
        const grants = grantsOf(planBatches(plan));
        for (const each of plan.hosts.filter((one) => one.failuresInRow >= plan.probeAfter)) {
          const mine = grants.filter((grant) => grant.hostId === each.id);
          expect(mine.length).toBeLessThanOrEqual(each.load.permits === 0 ? 1 : 0);
          for (const grant of mine) expect(grant).toMatchObject({ count: 1, permit: { parallel: 1 } });
        }
      }),
      { numRuns: 300 },
    );
  });

  test('a probe of a failing host begins with a page that answered before, every other time', () => {
    const ban = { ...NO_BAN, known: { url: 'http://h1.example/known', at: NOW } };
    const probes = [1, 2, 3].map((rests) => {
      const [grant] = grantsOf(planBatches(inputOf([hostOf(1, { failuresInRow: 10, rests, ban })])));
      expect(grant!.count).toBe(1);
      return grant!.permit.probe;
    });
    expect(probes).toEqual([{ url: ban.known.url }, undefined, { url: ban.known.url }]);
    const [healthy] = grantsOf(planBatches(inputOf([hostOf(1, { failuresInRow: 9, ban })])));
    expect(healthy!.permit.probe).toBeUndefined();
    const [unknown] = grantsOf(planBatches(inputOf([hostOf(1, { failuresInRow: 10, rests: 1 })])));
    expect(unknown!.permit.probe).toBeUndefined();
  });

  test('a permit says when the hours of its host end, if that is before its own end', () => {
    const permitsOf = (change: Partial<PlanHost>, gapMs: number) =>
      grantsOf(planBatches(inputOf([hostOf(1, change)], { gapMs }))).map(({ permit }) => permit);
    for (const gapMs of [0, 250]) {
      expect(permitsOf({ closesAt: NOW + 700 }, gapMs)[0]).toMatchObject({ closesAt: NOW + 700 });
      for (const permit of permitsOf({ closesAt: NOW + 3_600_000 }, gapMs))
        expect(permit).not.toHaveProperty('closesAt');
    }
  });

  test('is the same for the same input, and leaves the input alone', () => {
    fc.assert(
      fc.property(input, (plan) => {
        const before = structuredClone(plan);
        expect(planBatches(plan)).toEqual(planBatches(structuredClone(plan)));
        expect(plan).toEqual(before);
      }),
      { numRuns: 50 },
    );
  });

  test('without slots, hosts or pages left there is nothing to do', () => {
    expect(planBatches(inputOf([hostOf(1)], { slots: 0 }))).toEqual([]);
    expect(planBatches(inputOf([]))).toEqual([]);
    expect(grantsOf(planBatches(inputOf([hostOf(1)], { tasksLeft: 0 })))).toEqual([]);
    expect(planBatches(inputOf([hostOf(1)], { tasksLeft: 0 }))).toEqual([]);
  });

  test('one host without a gap keeps every worker busy with several batches and all its parallelism', () => {
    const batches = planBatches(inputOf([hostOf(1)], { gapMs: 0, parallel: 32, workers: 3 }));
    expect(batches.length).toBeGreaterThanOrEqual(3);
    expect(sum(grantsOf(batches).map((grant) => grant.permit.parallel))).toBe(32);
    expect(batches.every((batch) => batch.size === 60)).toBe(true);
  });

  test('where pages come fast, batches without a gap are larger, and only those', () => {
    const sizesOf = (change: Partial<PlanInput>, host: Partial<PlanHost> = {}) =>
      planBatches(inputOf([hostOf(1, host)], { parallel: 32, openBatchSize: 200, ...change })).map(
        ({ size }) => size,
      );
    expect(sizesOf({ gapMs: 0 })).toEqual([200, 200, 200, 200]);
    expect(sizesOf({ gapMs: 0 }, { ready: 64 })).toEqual([16, 16, 16, 16]);
    expect(Math.max(...sizesOf({ gapMs: 1 }))).toBeLessThanOrEqual(60);
    expect(Math.max(...sizesOf({ gapMs: 0 }, { renders: true }))).toBe(60);
    const hosts = Array.from({ length: 40 }, (_, id) => hostOf(id));
    const many = planBatches(inputOf(hosts, { gapMs: 0, openBatchSize: 200 }));
    expect(Math.max(...many.map(({ size }) => size))).toBe(200);
  });

  test.each([
    ['places that late pages of other batches have left', { permits: 0, eased: 4, parallel: 20 }, [8, 4]],
    ['the rest, where it is at least half of a share', { permits: 3, eased: 4, parallel: 28 }, [4]],
    ['nothing, where it is less', { permits: 3, eased: 4, parallel: 29 }, []],
    ['less for a few tasks', { permits: 3, eased: 4, parallel: 29 }, [3], 24],
    ['the last place, where nothing else can begin', { permits: 0, eased: 4, parallel: 31 }, [1]],
    ['nothing beside late pages of too many batches', { permits: 0, eased: 16, parallel: 16 }, []],
    ['one batch beside late pages of nearly too many', { permits: 0, eased: 15, parallel: 16 }, [8]],
  ])('a host without a gap gets %s', (_, load, parallel, ready = 1_000) => {
    const granted = grantsOf(planBatches(inputOf([hostOf(1, { load, ready })], { gapMs: 0, parallel: 32 })));
    expect(granted.map(({ permit }) => permit.parallel)).toEqual(parallel);
  });

  test.each([
    ['in its slow start', { answered: 3 }],
    ['that is probed', { failuresInRow: 10 }],
  ])('a host %s gets nothing beside late pages', (_, change) => {
    const grantsWith = (eased: number) =>
      grantsOf(
        planBatches(
          inputOf([hostOf(1, { ...change, load: { permits: 0, eased, parallel: eased } })], { gapMs: 0 }),
        ),
      );
    expect(grantsWith(1)).toEqual([]);
    expect(grantsWith(0)).toHaveLength(1);
  });

  test('a few tasks of one host are spread over workers too', () => {
    const batches = planBatches(inputOf([hostOf(1, { ready: 64 })], { gapMs: 0, parallel: 32, workers: 2 }));
    expect(sum(batches.map((batch) => batch.size))).toBe(64);
    expect(batches.length).toBeGreaterThanOrEqual(2);
  });

  test.each([
    ['paced', { gapMs: 250, parallel: 4 }],
    ['without a gap', { gapMs: 0, parallel: 32 }],
  ])('with 500 hosts waiting, %s, each gets its share in the first round', (_, change) => {
    const hosts = Array.from({ length: 500 }, (__, id) => hostOf(id));
    const batches = planBatches(inputOf(hosts, change));
    const served = new Set(grantsOf(batches).map((grant) => grant.hostId));
    expect(batches.every((batch) => batch.size <= 60)).toBe(true);
    expect(served.size).toBe(500);
  });

  test('a few tasks of many hosts are divided among workers, but not where each batch takes up one', () => {
    const hosts = Array.from({ length: 25 }, (_, id) => hostOf(id, { ready: 4 }));
    const sizes = (change: Partial<PlanInput>) =>
      planBatches(inputOf(hosts, { gapMs: 0, parallel: 32, batchSize: 120, ...change })).map(
        ({ size }) => size,
      );
    expect(sizes({ slots: 15 })).toEqual([52, 48]);
    expect(sizes({ slots: 2 })).toEqual([100]);
    expect(sizes({ slots: 15, workers: 8 })).toEqual([20, 20, 20, 20, 20]);
    expect(sizes({ slots: 15, gapMs: 50 })).toEqual([100]);
  });

  test('with 1,000 hosts waiting and room for 960 tasks, 960 hosts get one', () => {
    const batches = planBatches(inputOf(Array.from({ length: 1_000 }, (_, id) => hostOf(id))));
    const grants = grantsOf(batches);
    expect(batches.every((batch) => batch.size === 60)).toBe(true);
    expect(grants.map((grant) => grant.hostId)).toEqual(Array.from({ length: 960 }, (_, id) => id));
  });
});

interface Out {
  permit: Permit;
  hostId: number;
  count: number;
  doneAt: number;
}

/** Rounds of planning with permits that come back at random times; time stands still within a round. */
function simulate(options: {
  hosts: number;
  gapMs: number;
  parallel: number;
  rounds: number;
  seed: () => number;
}) {
  const permits = new OpenPermits();
  const hosts = Array.from({ length: options.hosts }, (_, id) => ({ ...hostOf(id, { ready: 1_000_000 }) }));
  const granted = new Map<number, Permit[]>(hosts.map((each) => [each.id, []]));
  const plannedIn = new Map<number, number>();
  let out: Out[] = [];
  let now = NOW;
  for (let round = 0; round < options.rounds; round++) {
    for (const done of out.filter((each) => each.doneAt <= now)) {
      // Only what is certain: the host stays taken until the end of its last permit.
      permits.release(done.permit, done.permit.endAt);
    }
    out = out.filter((each) => each.doneAt > now);
    const due = hosts
      .filter((each) => each.nextAt <= now + 400)
      .sort((a, b) => a.nextAt - b.nextAt)
      .map((each) => ({ ...each, load: { ...permits.load(each.host) } }));
    const slots = Math.max(0, 16 - out.length);
    const plan = inputOf(due, { now, slots, gapMs: options.gapMs, parallel: options.parallel });
    for (const grant of grantsOf(planBatches(plan))) {
      const { hostId, permit, count, nextAt } = grant;
      permits.grant(permit, { failuresInRow: 0, rests: 0, pace: null });
      expect(permits.load(permit.host).parallel).toBeLessThanOrEqual(options.parallel);
      granted.get(hostId)!.push(permit);
      hosts[hostId]!.nextAt = nextAt;
      plannedIn.set(hostId, round);
      const lastsMs = options.gapMs > 0 ? permit.endAt - now : 200;
      out.push({ permit, hostId, count, doneAt: now + lastsMs * (0.2 + 1.5 * options.seed()) });
    }
    for (const { id } of hosts) expect(round - (plannedIn.get(id) ?? 0)).toBeLessThan(300);
    now += 5 + Math.floor(options.seed() * 200);
  }
  return granted;
}

describe('permits over time', () => {
  const chance = (seed: number) => {
    let state = seed;
    return () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
  };

  test('windows of a paced host never overlap, whatever comes back when', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 20, max: 3_000 }),
        (seed, hosts, gapMs) => {
          const granted = simulate({ hosts, gapMs, parallel: 4, rounds: 300, seed: chance(seed) });
          for (const permits of granted.values()) {
            expect(permits.length).toBeGreaterThan(0);
            for (const [index, permit] of permits.entries()) {
              if (index > 0) expect(permit.startAt).toBeGreaterThanOrEqual(permits[index - 1]!.endAt);
            }
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  test('no host starves, with a gap and without', () => {
    for (const gapMs of [0, 250]) {
      const granted = simulate({
        hosts: 300,
        gapMs,
        parallel: gapMs === 0 ? 32 : 4,
        rounds: 400,
        seed: chance(7),
      });
      for (const permits of granted.values()) expect(permits.length).toBeGreaterThan(0);
    }
  });

  test('a piggybacked host gets one request, in batches without pages of others', () => {
    const piggybackedHost = hostOf(9, { ready: 0, nextAt: NOW + 100, crawlDelayMs: 1_000 });
    const batches = planBatches(inputOf([hostOf(1), hostOf(2, { piggybackedHost, ready: 1 }), hostOf(3)]));
    const [own, piggybacked] = batches.find(({ grants }) =>
      grants.some(({ hostId }) => hostId === 9),
    )!.grants;
    expect(own).toMatchObject({ hostId: 2, count: 1 });
    expect(piggybacked).toMatchObject({ hostId: 9, count: 0, piggybackedHost: { id: 9 } });
    const { permit, nextAt } = piggybacked!;
    expect(permit).toMatchObject({ startAt: NOW + 100, parallel: 1, gapMs: guardedGapMs(250, 1_000) });
    expect(nextAt).toBe(permit.endAt);
    expect(permit.endAt - permit.startAt).toBeGreaterThan(permit.gapMs);
    expect(batches).toHaveLength(2);
  });
});

describe('lanes of a host with paces by address', () => {
  const addresses = {
    ...{ hostGapMs: 50, gapMs: 400, lanes: 8, lanesMax: 20, otherMs: 400, gapsMs: { 'lambda-a': 900 } },
    ...{ isRising: false, isTrying: false },
  };
  const ban = { ...NO_BAN, known: { url: 'http://h1.example/', at: NOW } };
  const laned = (change: Partial<PlanHost> = {}) => hostOf(1, { addresses, ban, ...change });

  test('go to as many workers as come to the cap, each with its part of it, and take the host until the last is over', () => {
    const batches = planBatches(inputOf([laned(), hostOf(2)], { parallel: 40 }));
    const lanes = grantsOf(batches).filter(({ hostId }) => hostId === 1);
    expect(lanes).toHaveLength(8);
    expect(sum(lanes.map(({ permit }) => 1_000 / permit.gapMs))).toBeCloseTo(1_000 / 50);
    expect(lanes.map(({ permit }) => permit.startAt - NOW)).toEqual([0, 50, 100, 150, 200, 250, 300, 350]);
    const endAt = Math.max(...lanes.map(({ permit }) => permit.endAt));
    expect(new Set(lanes.map(({ nextAt }) => nextAt))).toEqual(new Set([endAt]));
    // None shares a batch, not even with another host: a worker may have to refuse it.
    for (const { grants } of batches.filter((batch) => batch.grants.some(({ hostId }) => hostId === 1)))
      expect(grants).toHaveLength(1);
    expect(lanes[0]!.permit.addresses).toEqual({
      ...{ gapsMs: { 'lambda-a': 900 }, otherMs: 400, lanes: 8, knownPage: 'http://h1.example/' },
    });
  });

  test('the slowest address can send at least one request under each', () => {
    for (const { permit } of grantsOf(planBatches(inputOf([laned({ ready: 3 })], { parallel: 40 }))))
      expect(permit.endAt - permit.startAt).toBeGreaterThan(900);
  });

  test.each<[string, Partial<PlanHost>, Partial<PlanInput>, number]>([
    ['no more than addresses', { addresses: { ...addresses, lanesMax: 3 } }, {}, 3],
    ['no more than half of the parallel requests', {}, { parallel: 8 }, 4],
    ['no more than tasks', { ready: 2 }, {}, 2],
    ['one while robots.txt is asked for', { needsRobots: true }, {}, 1],
    ['one while nobody was refused', { addresses: { ...addresses, lanes: 1 } }, {}, 1],
    ['one for a probe', { ban: { ...ban, since: NOW - 60_000, rests: 1, restUntil: NOW - 1 } }, {}, 1],
    ['none beside two rounds', { load: { permits: 16, eased: 0, parallel: 40 } }, {}, 0],
    [
      'none beside others while a higher rate is tried',
      { permitsMax: 1, load: { permits: 1, eased: 0, parallel: 2 } },
      {},
      0,
    ],
  ])('%s', (_, change, more, count) => {
    const grants = grantsOf(planBatches(inputOf([laned(change)], { parallel: 40, ...more })));
    expect(grants).toHaveLength(count);
    expect(sum(grants.map(({ permit }) => permit.parallel))).toBeLessThanOrEqual(more.parallel ?? 40);
  });
});
