import { describe, expect, test } from 'vitest';
import { RepeatedPages } from '../../../../src/coordinator/settle/repeated-pages.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import { pageOf, traceOf } from '../../../support/fixtures.ts';

const HOST = 'a.example';
let lastId = 0;

function fetched(body: string, bytes: number, contentType: string | null = 'text/html'): Outcome {
  const page = pageOf({ sha256: body.padEnd(64, '0'), bytes, contentType });
  return { kind: 'fetched', taskId: ++lastId, page, links: [], records: [], shows: [], trace: traceOf() };
}

/** How many of the outcomes were seen through. */
function blocks(watch: RepeatedPages, outcomes: Outcome[], host = HOST): number {
  return outcomes.filter((outcome) => watch.judge(outcome, host) !== outcome).length;
}

const pages = (count: number, bytes = 20_000) =>
  Array.from({ length: count }, (_, n) => fetched(`page ${n}`, bytes));
const repeats = (count: number, bytes = 500) => Array.from({ length: count }, () => fetched('same', bytes));

describe('the same few bytes for every URL', () => {
  test('are a refusal from the eighth on, when the pages before differed', () => {
    const watch = new RepeatedPages();
    expect(blocks(watch, pages(10))).toBe(0);
    expect(blocks(watch, repeats(7))).toBe(0);
    const [eighth] = repeats(1);
    expect(watch.judge(eighth!, HOST)).toMatchObject({
      kind: 'failed',
      code: 'soft-block',
      taskId: eighth!.taskId,
      page: null,
    });
    // Known from now on, also between pages.
    expect(blocks(watch, [...pages(2), ...repeats(2), ...pages(1)])).toBe(2);
    // Of another host nothing is known.
    expect(blocks(watch, repeats(20), 'b.example')).toBe(0);
  });

  test('are none when the host never had anything else, as applications in the browser', () => {
    expect(blocks(new RepeatedPages(), repeats(100))).toBe(0);
    // A few others, as a login and its help, are not enough to compare with.
    const watch = new RepeatedPages();
    expect(blocks(watch, [...pages(6), ...repeats(100)])).toBe(0);
  });

  test('are none when other pages stand between them, as missing products do', () => {
    const watch = new RepeatedPages();
    const mixed = pages(60).flatMap((page) => [...repeats(5), page]);
    expect(blocks(watch, mixed)).toBe(0);
  });

  test('are none when they are as large as pages are', () => {
    const watch = new RepeatedPages();
    blocks(watch, pages(10, 3_000));
    expect(blocks(watch, repeats(50, 1_500))).toBe(0);
    blocks(watch, pages(10, 100_000));
    expect(blocks(watch, repeats(50, 9_000))).toBe(0);
  });

  test('are none when they are no pages', () => {
    const watch = new RepeatedPages();
    blocks(watch, pages(10));
    const items = Array.from({ length: 20 }, () => fetched('same', 20, 'application/json'));
    expect(blocks(watch, items)).toBe(0);
  });
});
