import { describe, expect, test } from 'vitest';
import { type ApproachBook, openApproachBook } from '../../src/coordinator/approach-book.ts';
import type { Approach } from '../../src/core/approach.ts';
import { STALE_MS } from '../../src/core/approach-score.ts';
import type { Batch, BatchTask } from '../../src/core/batch.ts';
import type { FailureCode } from '../../src/core/failures.ts';
import type { JobInput } from '../../src/core/job.ts';
import type { Outcome } from '../../src/core/outcome.ts';
import { pageOf, specOf, T0, traceOf } from '../support/fixtures.ts';

const HOST = 'a.example';
type Site = (approach: Approach, task: BatchTask) => FailureCode | null;

/** A job against a pretended site: gives out tasks, lets the site answer, and learns. */
class Desk {
  book: ApproachBook;
  now = T0;
  chance = 0.5;
  readonly #site: Site;
  readonly #input: Partial<JobInput>;
  #lastId = 0;

  constructor(input: Partial<JobInput>, site: Site) {
    this.#input = input;
    this.#site = site;
    this.book = this.#open();
  }

  #open(): ApproachBook {
    return openApproachBook(specOf(this.#input), 'shop', () => this.chance)!;
  }

  restart(): void {
    const rows = JSON.parse(JSON.stringify(this.book.takeChanges()));
    this.book = this.#open();
    this.book.load(rows);
  }

  tasks(count: number, path = '/p/'): BatchTask[] {
    return Array.from({ length: count }, () => {
      const id = ++this.#lastId;
      return {
        id,
        url: `https://${HOST}${path}${id}`,
        permit: 0,
        depth: 0,
        route: null,
        attempt: 1,
        hops: 0,
        meta: null,
        lastVisit: null,
      };
    });
  }

  give(tasks: BatchTask[]): Batch {
    const batch = { tasks, permits: [{ host: HOST }] } as unknown as Batch;
    this.book.assign(batch, this.now);
    return batch;
  }

  /** One round: what each task was asked with, and which of them go on. */
  round(tasks: BatchTask[]): { approaches: Approach[]; climbing: Set<number> } {
    this.give(tasks);
    this.now += 1_000;
    const done = tasks.map((task) => {
      const code = this.#site(task.approach!, task);
      const trace = traceOf({ httpStatus: code === 'forbidden' ? 403 : 200 });
      const outcome: Outcome = code
        ? { kind: 'failed', taskId: task.id, code, detail: '', page: null, retryAfterMs: null, trace }
        : { kind: 'fetched', taskId: task.id, page: pageOf(), links: [], records: [], shows: [], trace };
      return { task, host: HOST, outcome };
    });
    const approaches = tasks.map((task) => task.approach!);
    return { approaches, climbing: this.book.learn(done, this.now) };
  }

  /** Runs tasks until none climbs any more; rungs of all attempts, by task. */
  finish(tasks: BatchTask[]): number[][] {
    const rungs = new Map<number, number[]>(tasks.map(({ id }) => [id, []]));
    for (let left = tasks; left.length > 0; ) {
      const { approaches, climbing } = this.round(left);
      for (const [index, { id }] of left.entries()) rungs.get(id)!.push(approaches[index]!.rung);
      left = left
        .filter(({ id }) => climbing.has(id))
        .map((task) => ({ ...task, attempt: task.attempt + 1 }));
    }
    return [...rungs.values()];
  }
}

const everything: Partial<JobInput> = {
  routes: [{ name: 'all', escalate: ['identity', 'impersonate', 'browser'] }],
};

describe('the ladder', () => {
  test('is not there for a job that asks for nothing', () => {
    expect(openApproachBook(specOf(), 'x', Math.random)).toBeNull();
    expect(openApproachBook(specOf({ routes: [{ name: 'all' }] }), 'x', Math.random)).toBeNull();
    expect(openApproachBook(specOf({ identity: { cookies: true } }), 'x', Math.random)).not.toBeNull();
  });

  test('is climbed by one rung an attempt, and the rung that works is kept', () => {
    const desk = new Desk(everything, ({ rung }) => (rung >= 2 ? null : 'blocked'));
    expect(desk.finish(desk.tasks(3))).toEqual([
      [0, 1, 2],
      [0, 1, 2],
      [0, 1, 2],
    ]);
    expect(desk.finish(desk.tasks(20))).toEqual(Array(20).fill([2]));
  });

  test('sends a few tasks ahead while nobody knows how the host answers', () => {
    const desk = new Desk(everything, ({ rung }) => (rung >= 1 ? null : 'captcha'));
    expect(desk.book.isUnsure(HOST)).toBe(true);
    const { climbing } = desk.round(desk.tasks(4));
    expect(climbing.size).toBe(4);
    // The lowest is known to fail now, and of the next nothing is known.
    expect(desk.book.isUnsure(HOST)).toBe(true);
    desk.round(desk.tasks(4));
    expect(desk.book.isUnsure(HOST)).toBe(false);
  });

  test('sends no scouts to hosts whose tasks go the plain way', () => {
    const routes = [{ name: 'hard', match: '/hard/*', escalate: ['identity' as const] }];
    const desk = new Desk({ routes }, () => null);
    expect(desk.book.isUnsure(HOST)).toBe(true);
    expect(desk.give(desk.tasks(4, '/easy/')).tasks[0]!.approach).toBeUndefined();
    expect(desk.book.isUnsure(HOST)).toBe(false);
    desk.give(desk.tasks(1, '/hard/'));
    expect(desk.book.isUnsure(HOST)).toBe(true);
  });

  test('ends at its top: what is refused there is over', () => {
    const desk = new Desk(everything, () => 'blocked');
    const [rungs] = desk.finish(desk.tasks(1));
    expect(rungs).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test('is not climbed for 429, nor for a broken connection', () => {
    for (const code of ['throttled', 'reset', 'unavailable'] as const) {
      const desk = new Desk(everything, () => code);
      expect(desk.finish(desk.tasks(2))).toEqual([[0], [0]]);
      expect(desk.round(desk.tasks(1)).approaches[0]!.rung).toBe(0);
    }
  });

  test('is climbed once by a page that is forbidden where others are not', () => {
    const desk = new Desk(everything, (_approach, { url }) =>
      url.includes('/private/') ? 'forbidden' : null,
    );
    desk.finish(desk.tasks(20));
    const same = desk.tasks(1);
    same[0]!.url = `https://${HOST}/private/p/7`;
    expect(desk.finish(same)).toEqual([[0, 1]]);
  });

  test('is not climbed again and again where every rung is known to fail', () => {
    const desk = new Desk(everything, (_approach, { url }) =>
      url.includes('/private/') ? 'forbidden' : null,
    );
    desk.finish(desk.tasks(3, '/private/'));
    desk.finish(desk.tasks(20));
    const attempts = desk.finish(desk.tasks(50, '/private/')).flat().length;
    expect(attempts).toBeLessThan(110);
  });

  test('is learned by URL template', () => {
    const desk = new Desk(everything, ({ rung }, { url }) =>
      url.includes('/hard/') && rung < 3 ? 'blocked' : null,
    );
    desk.finish(desk.tasks(10, '/easy/'));
    desk.finish(desk.tasks(10, '/hard/'));
    expect(desk.finish(desk.tasks(5, '/hard/'))).toEqual(Array(5).fill([3]));
    expect(desk.finish(desk.tasks(5, '/easy/'))).toEqual(Array(5).fill([0]));
  });

  test('takes a page without its required elements for a reason to try another way, within its attempts', () => {
    const desk = new Desk(everything, ({ fetcher }) => (fetcher === 'browser' ? null : 'validation'));
    const [task] = desk.tasks(1);
    const rungs: number[] = [];
    for (let attempt = 1; attempt <= 6; attempt++) {
      const { approaches, climbing } = desk.round([{ ...task!, attempt }]);
      rungs.push(approaches[0]!.rung);
      expect(climbing.size).toBe(0);
    }
    expect(rungs).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

describe('cheaper ways', () => {
  test('are tried again now and then, and taken when they work again', () => {
    let open = false;
    const desk = new Desk(everything, ({ rung }) => (open || rung >= 2 ? null : 'blocked'));
    desk.finish(desk.tasks(4));
    desk.chance = 0.019;
    expect(desk.round(desk.tasks(1)).approaches[0]!.rung).toBe(1);
    desk.chance = 0.0;
    expect(desk.round(desk.tasks(1)).approaches[0]!.rung).toBe(0);
    desk.chance = 0.5;
    expect(desk.round(desk.tasks(10)).approaches.map(({ rung }) => rung)).toEqual(Array(10).fill(2));

    open = true;
    let state = 1;
    const rungs: number[] = [];
    for (let count = 0; count < 400; count++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      desk.chance = state / 2 ** 32;
      rungs.push(desk.round(desk.tasks(1)).approaches[0]!.rung);
    }
    expect(rungs.slice(-50)).toEqual(Array(50).fill(0));
  });

  test('are tried again by one task when nobody tried for long', () => {
    const desk = new Desk(everything, ({ rung }) => (rung >= 1 ? null : 'blocked'));
    desk.finish(desk.tasks(4));
    desk.now += STALE_MS + 1_000;
    expect(desk.round(desk.tasks(5)).approaches.map(({ rung }) => rung)).toEqual([0, 1, 1, 1, 1]);
  });

  test('cost 2 % of the tasks at most', () => {
    const desk = new Desk(everything, ({ rung }) => (rung >= 1 ? null : 'blocked'));
    desk.finish(desk.tasks(4));
    let lower = 0;
    for (let count = 0; count < 5_000; count++) {
      desk.chance = (count % 100) / 100;
      desk.now = T0;
      if (desk.round(desk.tasks(1)).approaches[0]!.rung === 0) lower++;
    }
    expect(lower / 5_000).toBeLessThanOrEqual(0.02);
    expect(lower).toBeGreaterThan(0);
  });
});

describe('identities', () => {
  const browser: Partial<JobInput> = { identity: { mode: 'browser' } };

  test('stay while they work, and are the same after a restart', () => {
    const desk = new Desk(browser, () => null);
    const [first] = desk.round(desk.tasks(3)).approaches;
    expect(first!.identity).toMatch(/^[a-z0-9]{7}-1$/);
    desk.restart();
    const all = desk.round(desk.tasks(20)).approaches.map(({ identity }) => identity);
    expect(new Set(all)).toEqual(new Set([first!.identity]));
  });

  test('are retired when they are refused, and leave their cookies behind', () => {
    let banned = '';
    const desk = new Desk(browser, ({ identity }) => (identity === banned ? 'captcha' : null));
    const [first] = desk.round(desk.tasks(5)).approaches;
    banned = first!.identity!;
    const jar = { origin: `https://${HOST}`, identity: banned, cookies: [cookie('a', '1')] };
    desk.book.takeCookies([jar]);
    expect(desk.give(desk.tasks(1)).cookies).toEqual([jar]);
    for (let round = 0; round < 8; round++) desk.finish(desk.tasks(2));
    const [later] = desk.round(desk.tasks(1)).approaches;
    expect(later!.identity).not.toBe(banned);
    expect(later!.rung).toBe(0);
    expect(desk.give(desk.tasks(1)).cookies).toEqual([]);
    const rows = desk.book.takeChanges();
    expect(rows.filter(({ template }) => template.startsWith('@'))).toEqual([
      { host: `https://${HOST}`, template: `@cookies ${banned}`, stats: null },
    ]);
  });

  test('another one is taken by the rung that says so', () => {
    const input: Partial<JobInput> = { ...browser, routes: [{ name: 'all', escalate: ['identity'] }] };
    const desk = new Desk(input, ({ rung }) => (rung < 3 ? 'blocked' : null));
    const seen: (string | null)[] = [];
    let [task] = desk.tasks(1);
    for (let attempt = 1; attempt <= 4; attempt++) {
      const { approaches } = desk.round([{ ...task!, attempt }]);
      task = { ...task!, attempt };
      seen.push(approaches[0]!.identity);
    }
    expect(new Set(seen.slice(0, 3)).size).toBe(1);
    expect(seen[3]).not.toBe(seen[0]);
  });
});

function cookie(name: string, value: string) {
  return { name, value, domain: HOST, path: '/', expiresAt: null, secure: true, hostOnly: true };
}

describe('what is written down', () => {
  test('brings the learned rungs back', () => {
    const desk = new Desk(everything, ({ rung }) => (rung >= 2 ? null : 'blocked'));
    desk.finish(desk.tasks(4));
    desk.restart();
    expect(desk.book.isUnsure(HOST)).toBe(false);
    expect(desk.finish(desk.tasks(5))).toEqual(Array(5).fill([2]));
    expect(desk.book.takeChanges().length).toBeGreaterThan(0);
    expect(desk.book.takeChanges()).toEqual([]);
  });

  test('has cookies of bounded size only', () => {
    const desk = new Desk({ identity: { cookies: true } }, () => null);
    const jar = { origin: `https://${HOST}`, identity: null, cookies: [cookie('big', 'x'.repeat(10_000))] };
    desk.book.takeCookies([jar]);
    expect(desk.give(desk.tasks(1)).cookies).toEqual([]);
    desk.book.takeCookies([{ ...jar, cookies: [cookie('a', '1')] }]);
    expect(desk.give(desk.tasks(1)).cookies).toHaveLength(1);
    desk.restart();
    expect(desk.give(desk.tasks(1)).cookies).toEqual([{ ...jar, cookies: [cookie('a', '1')] }]);
  });
});
