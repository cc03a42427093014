import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { ValidationError } from '../../../../src/worker/job/compiled-job.ts';
import type { RouteCode } from '../../../../src/worker/job/route-code.ts';
import { compileReader } from '../../../../src/worker/records/read-records.ts';
import { RECORD_KEY_LENGTH_MAX, RECORDS_PER_TASK_MAX } from '../../../../src/worker/records/record-steps.ts';
import { pageOf, readWith, routeOf } from '../../../support/html/html-page.ts';

const HTML = '<h1 id=7>Oak chair</h1><p class=price>€ 12.50</p><li class=tag>a<li class=tag>b';
const SELECT = { title: 'h1', price: { css: '.price', type: 'money' }, none: '.none' };
const RECORD = { title: 'Oak chair', price: { amount: 12.5, currency: 'EUR' }, none: null };

const read = (route: object, code: RouteCode = {}, html = HTML) => readWith(route, code, pageOf(html));
const valuesOf = async (...args: Parameters<typeof read>) => (await read(...args)).values;
const keysOf = async (...args: Parameters<typeof read>) => (await read(...args)).drafts.map(({ key }) => key);
const refusal = async (...args: Parameters<typeof read>) => {
  const error = await read(...args).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ValidationError);
  return (error as Error).message;
};

describe('keys', () => {
  const items = {
    handler: () => [
      { sku: 'a', n: 1 },
      { sku: 'b', n: 1 },
      { sku: 'a', n: null, more: 2 },
    ],
  };

  test('the URL, with a place when there are several', async () => {
    expect(await keysOf({}, { handler: () => [{ a: 1 }, { a: 2 }] })).toEqual([
      'https://shop.example/1#0',
      'https://shop.example/1#1',
    ]);
    expect(await keysOf({}, { handler: () => ({ a: 1 }) })).toEqual(['https://shop.example/1']);
  });

  test('fields, and then records of one key are one', async () => {
    const { drafts, values, quality } = await read({ key: 'sku' }, items);
    expect(drafts.map(({ key, merge }) => [key, merge])).toEqual([
      ['a', true],
      ['b', true],
    ]);
    expect(values).toEqual([
      { sku: 'a', n: 1, more: 2 },
      { sku: 'b', n: 1 },
    ]);
    expect(quality).toEqual({ records: 2, invalid: 0, filled: { sku: 2, n: 2, more: 1 } });
  });

  test('only so many names are counted, since handlers may take them from pages', async () => {
    const handler = () => Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`f${at}`, at]));
    const { quality } = await read({}, { handler });
    expect(Object.keys(quality!.filled)).toHaveLength(LIMITS.qualityFieldsMax);
  });

  test('several fields cannot be mistaken for others', async () => {
    const keyOf = async (record: object) => (await keysOf({ key: ['a', 'b'] }, { handler: () => record }))[0];
    expect(await keyOf({ a: 'x', b: 1 })).toBe('["x","1"]');
    expect(await keyOf({ a: 'x"', b: ',"y' })).not.toBe(await keyOf({ a: 'x', b: '","y' }));
  });

  test.each([
    ['is not there', {}, "the key field 'sku' is missing"],
    ['is empty', { sku: '' }, "the key field 'sku' is missing"],
    ['is an object', { sku: { a: 1 } }, "the key field 'sku' is not a string or number"],
    [
      'is too long',
      { sku: 'x'.repeat(RECORD_KEY_LENGTH_MAX + 1) },
      'the key of a record has 2049 characters',
    ],
  ])('a key that %s fails the page', async (_, record, message) => {
    expect(await refusal({ key: 'sku' }, { handler: () => record })).toBe(message);
  });
});

describe('steps', () => {
  test('clean, validate, dedupe and store, in this order, sync or not', async () => {
    for (const wait of [false, true]) {
      const seen: string[] = [];
      const step = <T>(name: string, value: T) => {
        seen.push(name);
        return wait ? Promise.resolve(value) : value;
      };
      const code: RouteCode = {
        clean: (record, page) => step(`clean ${page.url}`, { ...record, none: 'x' }),
        schema: {
          safeParse(data) {
            seen.push('schema');
            return { success: true, data };
          },
        },
        validate: ({ none }) => step(`validate ${none}`, true),
        dedupe: ({ title }) => step('dedupe', `key of ${title}`),
        store: (record) => step('store', { written: record.none }),
      };
      const { drafts, values } = await read({ select: SELECT }, code);
      expect(seen).toEqual(['clean https://shop.example/1', 'schema', 'validate x', 'dedupe', 'store']);
      expect(drafts).toMatchObject([{ key: 'key of Oak chair', json: '{"written":"x"}', merge: true }]);
      expect(values).toEqual([{ written: 'x' }]);
    }
  });

  test('each may drop a record, and store may make several of it', async () => {
    const handler = () => [{ n: 1 }, { n: 2 }, { n: 3 }];
    const without = ({ n }: Record<string, unknown>) => (n === 2 ? null : { n });
    expect(await valuesOf({}, { handler, clean: without })).toEqual([{ n: 1 }, { n: 3 }]);
    expect(await valuesOf({}, { handler, store: without })).toEqual([{ n: 1 }, { n: 3 }]);
    expect(await keysOf({}, { handler, dedupe: ({ n }) => (n === 2 ? null : `n${n}`) })).toEqual([
      'n1',
      'n3',
    ]);
    const twice = { handler, store: (record: object) => [{ ...record }, { more: 1 }] };
    expect(await keysOf({}, { ...twice, dedupe: ({ n }) => `n${n}` })).toContain('n2#1');
  });

  test.each<[string | boolean, string]>([
    ['too dear', 'too dear'],
    [false, 'validate rejected the record'],
  ])('validate gives %s', async (verdict, message) => {
    expect(await refusal({ select: SELECT }, { validate: () => verdict })).toBe(message);
  });

  test.each([true, null, undefined, ''])('validate may give %s', async (verdict) => {
    expect(await valuesOf({ select: SELECT }, { validate: () => verdict })).toHaveLength(1);
  });

  test('the handler gets what select found', async () => {
    const handler: RouteCode['handler'] = (page, selected) => ({ ...selected, url: page.url });
    expect(await valuesOf({ select: SELECT }, { handler })).toEqual([
      { ...RECORD, url: 'https://shop.example/1' },
    ]);
    expect(await valuesOf({ select: { a: '.none' } }, { handler })).toEqual([
      { url: 'https://shop.example/1' },
    ]);
  });

  test('a throw of any of them is an error of the code, not of the page', async () => {
    const boom = () => {
      throw new Error('boom');
    };
    for (const name of ['handler', 'clean', 'validate', 'dedupe', 'store'] as const) {
      for (const step of [boom, async () => boom()]) {
        const error = await read({ select: SELECT }, { [name]: step }).catch((caught: unknown) => caught);
        expect(error).toMatchObject({ message: 'boom' });
        expect(error).not.toBeInstanceOf(ValidationError);
      }
    }
  });

  test.each<[string, RouteCode, string]>([
    ['a text', { handler: () => 'text' }, 'a record must be an object, got string'],
    ['a list in a list', { handler: () => [[]] }, 'a record must be an object, got a list'],
    ['too many', { handler: () => new Array(RECORDS_PER_TASK_MAX + 1).fill({}) }, 'the limit is'],
    ['too much', { handler: () => ({ a: 'x'.repeat(LIMITS.recordBytesMax) }) }, 'the limit is'],
    ['what writes itself', { handler: () => new Date(0) }, 'must be an object when it is written'],
    [
      'a number from clean',
      { handler: () => ({}), clean: () => 5 as never },
      'clean must return an object, got 5',
    ],
    [
      'a number from dedupe',
      { handler: () => ({}), dedupe: () => 5 as never },
      'dedupe must return a string',
    ],
    ['an object from validate', { handler: () => ({}), validate: () => ({}) as never }, 'got object'],
    ['many from store', { handler: () => new Array(6_000).fill({}), store: () => [{}, {}] }, 'more than'],
  ])('%s is refused', async (_, code, message) => {
    await expect(read({}, code)).rejects.toThrow(message);
  });

  test('key and dedupe together make no sense', async () => {
    await expect(
      compileReader(routeOf({ select: SELECT, key: 'title' }), { dedupe: () => 'a' }),
    ).rejects.toThrow("route 'product' has both key and dedupe");
  });
});
