import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { isDataDeeper, isJsonDeeper } from '../../../../src/core/values/nesting.ts';
import { Page } from '../../../../src/worker/page/page.ts';
import { inputOf, pageOf, readWith } from '../../../support/html/html-page.ts';

function nested(levels: number): Record<string, unknown> {
  let data: Record<string, unknown> = {};
  for (let level = 1; level < levels; level++) data = { a: data };
  return data;
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test('text and data are as deep as they are, whatever their texts contain', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.integer({ min: 0, max: 7 }), (value, max) => {
      const json = JSON.stringify(value);
      expect(isJsonDeeper(json, max)).toBe(depthOf(value) > max);
      expect(isDataDeeper(value, max)).toBe(depthOf(value) > max);
    }),
  );
  for (const text of ['[[[[', '\\', '"[[', '\\"{{', '\\\\"[[['])
    expect(isJsonDeeper(JSON.stringify([[text], { [text]: text }]), 2)).toBe(false);
});

describe('a record', () => {
  const message = `nested deeper than ${LIMITS.dataNestingMax} levels`;

  test('may be as deep as the limit, and no deeper', async () => {
    const levels = async (count: number) =>
      (await readWith({}, { handler: () => nested(count) }, pageOf('<h1>x</h1>'))).drafts;
    expect(await levels(LIMITS.dataNestingMax)).toHaveLength(1);
    await expect(levels(LIMITS.dataNestingMax + 1)).rejects.toThrow(message);
    await expect(levels(200_000)).rejects.toThrow(message);
  });

  test('of JSON-LD neither', async () => {
    const deep = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
    const html = `<script type="application/ld+json">{"@type": "Product", "x": ${deep}}</script>`;
    const route = { select: { x: { jsonLd: 'Product.x', type: 'json' } } };
    await expect(readWith(route, {}, pageOf(html))).rejects.toThrow(message);
  });
});

describe('a link that a handler asks for', () => {
  const page = () => new Page(inputOf('<h1>x</h1>'));

  test('carries plain data only', () => {
    const one = page();
    one.follow('/2', { meta: { at: new Date(0), code: () => 1, n: 1 }, route: 'x', priority: 3 });
    expect(one.followed).toEqual([
      { url: '/2', options: { meta: { at: '1970-01-01T00:00:00.000Z', n: 1 }, route: 'x', priority: 3 } },
    ]);
  });

  test.each([
    ['no URL', 7, {}, 'page.follow needs a URL, got number'],
    ['a priority that is none', '/2', { priority: 'high' }, 'priority is not an integer: high'],
    ['a route that is none', '/2', { route: 7 }, 'route is not a name'],
    ['meta that is a list', '/2', { meta: [1] }, 'meta is not an object'],
    ['meta that is too deep', '/2', { meta: nested(201) }, 'meta is nested deeper than 200'],
    ['meta that is too large', '/2', { meta: { a: 'x'.repeat(2_000_000) } }, 'the limit is 1048576'],
  ])('%s fails with its page', (_, url, options, problem) => {
    expect(() => page().follow(url as string, options as object)).toThrow(problem);
  });
});
