import { describe, expect, test } from 'vitest';
import { type Assignment, ProxySelector } from '../../../../src/coordinator/proxies/proxy-selector.ts';
import { type Report, WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import { parseProxyList } from '../../../../src/core/proxies/proxy.ts';
import type { ProxyPool } from '../../../../src/core/proxies/proxy-pool.ts';
import { pageOf, T0, traceOf } from '../../../support/fixtures.ts';

const A = { host: 'a.example', identity: null };
const B = { host: 'b.example', identity: null };

function poolOf(count: number, spec: Partial<ProxyPool['spec']> = {}): ProxyPool {
  const lines = Array.from({ length: count }, (_, index) => `http://user:secret@h${index}:1`);
  return {
    name: 'dc',
    spec: {
      type: 'datacenter',
      from: { env: 'X' },
      sticky: false,
      perWorker: false,
      cooldownSeconds: 30,
      ...spec,
    },
    proxies: parseProxyList(lines.join('\n'), 'it'),
  };
}

/** Even, and always the same. */
function randomOf(): () => number {
  let state = 1;
  return () => {
    state = (state * 16_807) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

class ProxySetup {
  readonly pool: ProxyPool;
  readonly selector: ProxySelector;
  now = T0;

  constructor(count: number, spec: Partial<ProxyPool['spec']> = {}) {
    this.pool = poolOf(count, spec);
    this.selector = new ProxySelector([this.pool], randomOf());
  }

  id(index: number): string {
    return this.pool.proxies[index]!.id;
  }

  assign(asker = A): Assignment {
    return this.selector.assign('dc', asker, this.now);
  }

  firstOf(asker = A): string {
    const given = this.assign(asker);
    if (given.kind !== 'proxies') throw new Error(given.message);
    return given.proxies[0]!.id;
  }

  /** Which proxies get how many of the next tasks. */
  shares(count: number, asker = A): Map<string, number> {
    const ids = Array.from({ length: count }, () => this.firstOf(asker));
    return new Map([...Map.groupBy(ids, (id) => id)].map(([id, group]) => [id, group.length]));
  }

  /** What came of a request through a proxy: null is a success. */
  note(index: number, code: FailureCode | null, asker = A, times = 1): void {
    const trace = traceOf({ via: { rung: 0, fetcher: 'http', identity: null, proxy: this.id(index) } });
    const outcome: Outcome =
      code === null
        ? { kind: 'fetched', taskId: 1, page: pageOf(), links: [], records: [], shows: [], trace }
        : { kind: 'failed', taskId: 1, code, detail: 'x', page: null, retryAfterMs: null, trace };
    this.selector.note(reportOf({ outcomes: Array(times).fill(outcome) }), () => asker.host, this.now);
  }
}

function reportOf(change: Partial<Report>): Report {
  return {
    version: WIRE_VERSION,
    batchId: 1,
    part: 0,
    final: true,
    worker: 'w',
    startedAt: T0,
    durationMs: 1,
    permits: [],
    robots: [],
    outcomes: [],
    quality: [],
    archive: null,
    ...change,
  };
}

describe('a proxy that fails', () => {
  test('rests at once when it never worked, after a second time when it did; each rest is twice as long', () => {
    const setup = new ProxySetup(1);
    setup.note(0, 'proxy');
    const first = setup.assign();
    expect(first).toMatchObject({ kind: 'none', until: T0 + 30_000 });
    setup.now = T0 + 30_000;
    expect(setup.assign().kind).toBe('proxies');
    setup.note(0, 'proxy');
    expect(setup.assign()).toMatchObject({ kind: 'none', until: T0 + 30_000 + 60_000 });

    const proven = new ProxySetup(1);
    proven.note(0, null);
    proven.note(0, 'proxy');
    expect(proven.assign().kind).toBe('proxies');
    proven.note(0, 'proxy');
    expect(proven.assign().kind).toBe('none');
  });

  test('rests for an hour at most', () => {
    const setup = new ProxySetup(1);
    for (let round = 0; round < 12; round++) {
      setup.note(0, 'proxy');
      const given = setup.assign();
      if (given.kind !== 'none') throw new Error('it does not rest');
      expect(given.until - setup.now).toBeLessThanOrEqual(3_600_000);
      setup.now = given.until;
    }
  });

  test('is tried with one request at a time after its rest, and freed by one success', () => {
    const setup = new ProxySetup(1);
    setup.note(0, 'proxy');
    setup.now += 30_000;
    expect(setup.assign().kind).toBe('proxies');
    expect(setup.assign()).toMatchObject({ kind: 'none', until: setup.now + 1_000 });
    setup.note(0, null);
    expect([setup.assign().kind, setup.assign().kind]).toEqual(['proxies', 'proxies']);
    setup.note(0, 'proxy');
    expect(setup.assign().kind).toBe('proxies');
  });

  test('is tried again when nothing is heard of the try', () => {
    const setup = new ProxySetup(1);
    setup.note(0, 'proxy');
    setup.now += 30_000;
    setup.assign();
    setup.now += 60_000;
    expect(setup.assign().kind).toBe('proxies');
  });

  test('is down while it rests, and not when it fails where others get through', () => {
    const setup = new ProxySetup(1);
    const isDown = () => setup.selector.isDown(setup.id(0), setup.now);
    expect(isDown()).toBe(false);
    setup.note(0, 'proxy');
    expect(isDown()).toBe(true);
    setup.now += 30_000;
    for (let round = 0; round < 5; round++) {
      setup.note(0, 'not-found', B);
      setup.note(0, 'proxy', A);
      expect(isDown()).toBe(false);
    }
    setup.note(0, 'proxy', A);
    expect(isDown()).toBe(true);
  });

  test('is known from what workers passed over, too', () => {
    const setup = new ProxySetup(2);
    setup.selector.note(reportOf({ proxyFaults: [{ id: setup.id(0), count: 5 }] }), () => null, setup.now);
    expect([...setup.shares(50).keys()]).toEqual([setup.id(1)]);
  });

  test('at three hosts in a row for unknown reasons rests everywhere', () => {
    const setup = new ProxySetup(2);
    for (const host of ['a.example', 'b.example', 'c.example']) {
      setup.note(0, 'connect-timeout', { host, identity: null });
    }
    expect(setup.shares(40, { host: 'd.example', identity: null }).get(setup.id(0))).toBeUndefined();
  });
});

describe('a host that refuses a proxy', () => {
  test('gets it no more for a while, and others do', () => {
    const setup = new ProxySetup(3);
    for (const index of [1, 2]) setup.note(index, null, A, 5);
    setup.note(0, 'forbidden');
    setup.note(0, 'forbidden');
    expect(setup.shares(100, A).get(setup.id(0))).toBeUndefined();
    expect(setup.shares(200, B).get(setup.id(0))).toBeGreaterThan(20);
    expect(setup.selector.isDown(setup.id(0), setup.now)).toBe(false);
  });

  test('is not to be confused with pages that are forbidden for everybody', () => {
    const setup = new ProxySetup(4);
    for (let round = 0; round < 20; round++) {
      for (let index = 0; index < 4; index++)
        setup.note(index, (round + index) % 2 === 0 ? 'forbidden' : null);
    }
    for (let index = 0; index < 4; index++) setup.note(index, 'forbidden', A, 3);
    expect(setup.shares(400).size).toBe(4);
  });

  test('makes a refusal doubtful where the proxy has never worked, and not where it works', () => {
    const setup = new ProxySetup(2);
    setup.note(0, 'forbidden');
    setup.note(1, null, A, 3);
    setup.note(1, 'forbidden');
    const doubtful = (index: number) => setup.selector.isDoubtful('dc', setup.id(index), A.host);
    expect([doubtful(0), doubtful(1)]).toEqual([true, false]);
    setup.note(1, 'forbidden');
    expect(doubtful(1)).toBe(true);
    const alone = new ProxySetup(1);
    alone.note(0, 'forbidden');
    expect(alone.selector.isDoubtful('dc', alone.id(0), A.host)).toBe(false);
  });
});

describe('choice', () => {
  test('prefers what works at the host, without giving up on the rest', () => {
    const setup = new ProxySetup(2);
    setup.note(0, null, A, 20);
    for (let round = 0; round < 10; round++) {
      setup.note(1, null);
      setup.note(1, 'captcha');
    }
    const shares = setup.shares(1_000);
    expect(shares.get(setup.id(0))! / shares.get(setup.id(1))!).toBeGreaterThan(2);
    expect(shares.get(setup.id(1))).toBeGreaterThan(50);
  });

  test('gives each task others to go on with', () => {
    const given = new ProxySetup(10).assign();
    if (given.kind !== 'proxies') throw new Error(given.message);
    expect(new Set(given.proxies.map(({ id }) => id)).size).toBe(3);
    expect(given.proxies[0]!.url).toMatch(/^http:\/\/user:secret@h\d:1$/);
  });

  test('of a large pool is spread over all of it', () => {
    const setup = new ProxySetup(500);
    expect(setup.shares(4_000).size).toBeGreaterThan(450);
  });

  test('stays for a while in residential pools, and moves on when the proxy is refused', () => {
    const setup = new ProxySetup(20, { type: 'residential' });
    const [home] = [...setup.shares(50).keys()];
    expect(setup.shares(50).size).toBe(1);
    const index = setup.pool.proxies.findIndex(({ id }) => id === home);
    setup.note(index, 'blocked');
    setup.note(index, 'blocked');
    const next = setup.firstOf();
    expect(next).not.toBe(home);
    expect(setup.shares(20).size).toBe(1);
    setup.now += 1_200_000;
    expect(new Set([home, next, setup.firstOf()]).size).toBeGreaterThan(1);
  });

  test('keeps to the rate of a proxy on average', () => {
    const setup = new ProxySetup(2, { ratePerProxy: 2 });
    let given = 0;
    while (setup.assign().kind === 'proxies') given++;
    // Ten seconds ahead, and the one that fills it.
    expect(given).toBe(2 * (2 * 10 + 1));
    setup.now += 1_000;
    while (setup.assign().kind === 'proxies') given++;
    expect(given).toBe(2 * (2 * 11 + 1));
  });
});

describe('a shortage', () => {
  test('says what happened and when it ends, and nothing secret', () => {
    const setup = new ProxySetup(3);
    setup.note(2, null, B);
    setup.note(0, 'proxy');
    setup.note(1, 'proxy');
    setup.note(2, 'forbidden');
    setup.note(2, 'forbidden');
    expect(setup.assign().kind).toBe('none');
    expect(setup.selector.shortage(setup.now)).toBe(
      "no proxy of pool 'dc' is usable until 2023-11-14T22:13:50Z (3 in total, 2 failed, 1 refused by a.example)",
    );
    expect(setup.selector.shortage(setup.now + 30_000)).toBeNull();
    expect(setup.assign(B).kind).toBe('proxies');
  });
});

test('what was learned survives in another selector', () => {
  const setup = new ProxySetup(2);
  setup.note(0, 'proxy');
  setup.note(1, null, B);
  setup.note(1, 'forbidden');
  setup.note(1, 'forbidden');
  const rows = setup.selector.takeChanges();
  expect(JSON.stringify(rows)).not.toContain('secret');
  expect(setup.selector.takeChanges()).toEqual([]);
  const other = new ProxySetup(2);
  other.selector.learn(JSON.parse(JSON.stringify(rows)));
  other.now = setup.now;
  expect(other.assign(A).kind).toBe('none');
  expect([...other.shares(30, B).keys()]).toEqual([setup.id(1)]);
});
