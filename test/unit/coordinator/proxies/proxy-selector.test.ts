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

class Desk {
  readonly pool: ProxyPool;
  readonly book: ProxySelector;
  now = T0;

  constructor(count: number, spec: Partial<ProxyPool['spec']> = {}) {
    this.pool = poolOf(count, spec);
    this.book = new ProxySelector([this.pool], randomOf());
  }

  id(index: number): string {
    return this.pool.proxies[index]!.id;
  }

  assign(asker = A): Assignment {
    return this.book.assign('dc', asker, this.now);
  }

  firstOf(asker = A): string {
    const given = this.assign(asker);
    if (given.kind === 'none') throw new Error(given.message);
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
    this.book.note(reportOf({ outcomes: Array(times).fill(outcome) }), () => asker.host, this.now);
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
    const desk = new Desk(1);
    desk.note(0, 'proxy');
    const first = desk.assign();
    expect(first).toMatchObject({ kind: 'none', until: T0 + 30_000 });
    desk.now = T0 + 30_000;
    expect(desk.assign().kind).toBe('proxies');
    desk.note(0, 'proxy');
    expect(desk.assign()).toMatchObject({ kind: 'none', until: T0 + 30_000 + 60_000 });

    const proven = new Desk(1);
    proven.note(0, null);
    proven.note(0, 'proxy');
    expect(proven.assign().kind).toBe('proxies');
    proven.note(0, 'proxy');
    expect(proven.assign().kind).toBe('none');
  });

  test('rests for an hour at most', () => {
    const desk = new Desk(1);
    for (let round = 0; round < 12; round++) {
      desk.note(0, 'proxy');
      const given = desk.assign();
      if (given.kind !== 'none') throw new Error('it does not rest');
      expect(given.until - desk.now).toBeLessThanOrEqual(3_600_000);
      desk.now = given.until;
    }
  });

  test('is tried with one request at a time after its rest, and freed by one success', () => {
    const desk = new Desk(1);
    desk.note(0, 'proxy');
    desk.now += 30_000;
    expect(desk.assign().kind).toBe('proxies');
    expect(desk.assign()).toMatchObject({ kind: 'none', until: desk.now + 1_000 });
    desk.note(0, null);
    expect([desk.assign().kind, desk.assign().kind]).toEqual(['proxies', 'proxies']);
    desk.note(0, 'proxy');
    expect(desk.assign().kind).toBe('proxies');
  });

  test('is tried again when nothing is heard of the try', () => {
    const desk = new Desk(1);
    desk.note(0, 'proxy');
    desk.now += 30_000;
    desk.assign();
    desk.now += 60_000;
    expect(desk.assign().kind).toBe('proxies');
  });

  test('is down while it rests, and not when it fails where others get through', () => {
    const desk = new Desk(1);
    const isDown = () => desk.book.isDown(desk.id(0), desk.now);
    expect(isDown()).toBe(false);
    desk.note(0, 'proxy');
    expect(isDown()).toBe(true);
    desk.now += 30_000;
    for (let round = 0; round < 5; round++) {
      desk.note(0, 'not-found', B);
      desk.note(0, 'proxy', A);
      expect(isDown()).toBe(false);
    }
    desk.note(0, 'proxy', A);
    expect(isDown()).toBe(true);
  });

  test('is known from what workers passed over, too', () => {
    const desk = new Desk(2);
    desk.book.note(reportOf({ proxyFaults: [{ id: desk.id(0), count: 5 }] }), () => null, desk.now);
    expect([...desk.shares(50).keys()]).toEqual([desk.id(1)]);
  });

  test('at three hosts in a row for unknown reasons rests everywhere', () => {
    const desk = new Desk(2);
    for (const host of ['a.example', 'b.example', 'c.example']) {
      desk.note(0, 'connect-timeout', { host, identity: null });
    }
    expect(desk.shares(40, { host: 'd.example', identity: null }).get(desk.id(0))).toBeUndefined();
  });
});

describe('a host that refuses a proxy', () => {
  test('gets it no more for a while, and others do', () => {
    const desk = new Desk(3);
    for (const index of [1, 2]) desk.note(index, null, A, 5);
    desk.note(0, 'forbidden');
    desk.note(0, 'forbidden');
    expect(desk.shares(100, A).get(desk.id(0))).toBeUndefined();
    expect(desk.shares(200, B).get(desk.id(0))).toBeGreaterThan(20);
    expect(desk.book.isDown(desk.id(0), desk.now)).toBe(false);
  });

  test('is not to be confused with pages that are forbidden for everybody', () => {
    const desk = new Desk(4);
    for (let round = 0; round < 20; round++) {
      for (let index = 0; index < 4; index++)
        desk.note(index, (round + index) % 2 === 0 ? 'forbidden' : null);
    }
    for (let index = 0; index < 4; index++) desk.note(index, 'forbidden', A, 3);
    expect(desk.shares(400).size).toBe(4);
  });

  test('makes a refusal doubtful where the proxy has never worked, and not where it works', () => {
    const desk = new Desk(2);
    desk.note(0, 'forbidden');
    desk.note(1, null, A, 3);
    desk.note(1, 'forbidden');
    const doubtful = (index: number) => desk.book.isDoubtful('dc', desk.id(index), A.host);
    expect([doubtful(0), doubtful(1)]).toEqual([true, false]);
    desk.note(1, 'forbidden');
    expect(doubtful(1)).toBe(true);
    const alone = new Desk(1);
    alone.note(0, 'forbidden');
    expect(alone.book.isDoubtful('dc', alone.id(0), A.host)).toBe(false);
  });
});

describe('choice', () => {
  test('prefers what works at the host, without giving up on the rest', () => {
    const desk = new Desk(2);
    desk.note(0, null, A, 20);
    for (let round = 0; round < 10; round++) {
      desk.note(1, null);
      desk.note(1, 'captcha');
    }
    const shares = desk.shares(1_000);
    expect(shares.get(desk.id(0))! / shares.get(desk.id(1))!).toBeGreaterThan(2);
    expect(shares.get(desk.id(1))).toBeGreaterThan(50);
  });

  test('gives each task others to go on with', () => {
    const given = new Desk(10).assign();
    if (given.kind === 'none') throw new Error(given.message);
    expect(new Set(given.proxies.map(({ id }) => id)).size).toBe(3);
    expect(given.proxies[0]!.url).toMatch(/^http:\/\/user:secret@h\d:1$/);
  });

  test('of a large pool is spread over all of it', () => {
    const desk = new Desk(500);
    expect(desk.shares(4_000).size).toBeGreaterThan(450);
  });

  test('stays for a while in residential pools, and moves on when the proxy is refused', () => {
    const desk = new Desk(20, { type: 'residential' });
    const [home] = [...desk.shares(50).keys()];
    expect(desk.shares(50).size).toBe(1);
    const index = desk.pool.proxies.findIndex(({ id }) => id === home);
    desk.note(index, 'blocked');
    desk.note(index, 'blocked');
    const next = desk.firstOf();
    expect(next).not.toBe(home);
    expect(desk.shares(20).size).toBe(1);
    desk.now += 1_200_000;
    expect(new Set([home, next, desk.firstOf()]).size).toBeGreaterThan(1);
  });

  test('keeps to the rate of a proxy on average', () => {
    const desk = new Desk(2, { ratePerProxy: 2 });
    let given = 0;
    while (desk.assign().kind === 'proxies') given++;
    // Ten seconds ahead, and the one that fills it.
    expect(given).toBe(2 * (2 * 10 + 1));
    desk.now += 1_000;
    while (desk.assign().kind === 'proxies') given++;
    expect(given).toBe(2 * (2 * 11 + 1));
  });
});

describe('a shortage', () => {
  test('says what happened and when it ends, and nothing secret', () => {
    const desk = new Desk(3);
    desk.note(2, null, B);
    desk.note(0, 'proxy');
    desk.note(1, 'proxy');
    desk.note(2, 'forbidden');
    desk.note(2, 'forbidden');
    expect(desk.assign().kind).toBe('none');
    expect(desk.book.shortage(desk.now)).toBe(
      "no proxy of pool 'dc' is usable until 2023-11-14T22:13:50Z (3 in total, 2 failed, 1 refused by a.example)",
    );
    expect(desk.book.shortage(desk.now + 30_000)).toBeNull();
    expect(desk.assign(B).kind).toBe('proxies');
  });
});

test('what was learned survives in another book', () => {
  const desk = new Desk(2);
  desk.note(0, 'proxy');
  desk.note(1, null, B);
  desk.note(1, 'forbidden');
  desk.note(1, 'forbidden');
  const rows = desk.book.takeChanges();
  expect(JSON.stringify(rows)).not.toContain('secret');
  expect(desk.book.takeChanges()).toEqual([]);
  const other = new Desk(2);
  other.book.learn(JSON.parse(JSON.stringify(rows)));
  other.now = desk.now;
  expect(other.assign(A).kind).toBe('none');
  expect([...other.shares(30, B).keys()]).toEqual([desk.id(1)]);
});
