import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { canonicalJson } from '../../../../src/core/values/canonical-json.ts';
import { ValidationError } from '../../../../src/worker/job/compiled-job.ts';
import type { RouteCode } from '../../../../src/worker/job/route-code.ts';
import { Page } from '../../../../src/worker/page/page.ts';
import { compileReader } from '../../../../src/worker/records/read-records.ts';
import { toDrafts } from '../../../../src/worker/records/record-steps.ts';
import { cpuMsOf } from '../../../support/cpu-time.ts';
import { inputOf, pageOf, readWith, routeOf } from '../../../support/html/html-page.ts';

const HTML = '<h1 id=7>Oak chair</h1><p class=price>€ 12.50</p><li class=tag>a<li class=tag>b';
const SELECT = { title: 'h1', price: { css: '.price', type: 'money' }, none: '.none' };
const RECORD = { title: 'Oak chair', price: { amount: 12.5, currency: 'EUR' }, none: null };

const read = (route: object, code: RouteCode = {}, html = HTML) => readWith(route, code, pageOf(html));
const valuesOf = async (...args: Parameters<typeof read>) => (await read(...args)).values;
const _keysOf = async (...args: Parameters<typeof read>) =>
  (await read(...args)).drafts.map(({ key }) => key);
const refusal = async (...args: Parameters<typeof read>) => {
  const error = await read(...args).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ValidationError);
  return (error as Error).message;
};

describe('what a page gives', () => {
  test('a record with its key, its hash, its values and how full it is', async () => {
    const { drafts, values, quality } = await read({ select: SELECT });
    expect(drafts).toEqual([
      { key: 'https://shop.example/1', json: JSON.stringify(RECORD), hash: expect.any(String), merge: false },
    ]);
    expect(values).toEqual([RECORD]);
    expect(quality).toEqual({ records: 1, invalid: 0, filled: { title: 1, price: 1, none: 0 } });
  });

  test('at once, unless code of the job waits', async () => {
    const promised = async (route: object, code: RouteCode = {}) =>
      (await compileReader(routeOf(route), code))!(pageOf(HTML)) instanceof Promise;
    expect(
      await promised({ select: SELECT, key: 'title', require: ['h1'], schema: { type: 'object' } }),
    ).toBe(false);
    expect(
      await promised({ select: SELECT }, { schema: z.object({}), clean: (it) => it, store: (it) => it }),
    ).toBe(false);
    expect(await promised({}, { handler: () => ({ a: 1 }) })).toBe(false);
    expect(await promised({}, { handler: async () => ({ a: 1 }) })).toBe(true);
    expect(await promised({ select: SELECT }, { validate: async () => null })).toBe(true);
  });

  test('a forgotten await names the handler and the field', async () => {
    const price = async () => 12.5;
    await expect(read({ name: 'product' }, { handler: () => ({ price: price() }) })).rejects.toThrow(
      "the handler of route 'product' returned a promise as the field 'price': an await is missing",
    );
    await expect(read({ name: 'list' }, { handler: () => [{ a: 1 }, price()] })).rejects.toThrow(
      "the handler of route 'list' returned a promise among its records: an await is missing",
    );
  });

  test('nothing, when no field has a value or the page is no HTML', async () => {
    const blank = { records: 0, invalid: 0, blank: 1, filled: {} };
    expect(await read({ select: { a: '.none' } })).toEqual({ drafts: [], values: [], quality: blank });
    const json = new Page(inputOf('{}', { contentType: 'application/json' }));
    expect(await readWith({ select: SELECT }, {}, json)).toEqual({ drafts: [], values: [], quality: null });
  });

  test('title and main content, when the route asks for Markdown', async () => {
    const html = `<title>Shop</title><nav><a href=/>Home</a></nav><main><h1>Oak</h1><p id=x>A <b>good</b> chair. ${'Words. '.repeat(50)}</main>`;
    const [record] = await valuesOf({ markdown: true, select: { id: 'p@id' } }, {}, html);
    expect(record).toEqual({
      title: expect.any(String),
      markdown: expect.stringContaining('**good**'),
      id: 'x',
    });
    const plain = new Page(inputOf('just text', { contentType: 'text/plain' }));
    expect((await readWith({ markdown: true }, {}, plain)).values).toEqual([
      { title: null, markdown: 'just text' },
    ]);
    const picture = new Page(inputOf('', { contentType: 'image/png' }));
    expect((await readWith({ markdown: true }, {}, picture)).values).toEqual([]);
  });

  test('a route without anything to do reads nothing', async () => {
    expect(await compileReader(routeOf({}), {})).toBeNull();
  });

  test('the same hash for the same data, in whatever order', async () => {
    const hashOf = async (handler: () => unknown) => (await read({}, { handler })).drafts[0]!.hash;
    const ordered = await hashOf(() => ({ a: '1', b: null, c: { d: 1, e: [2] } }));
    expect(await hashOf(() => ({ c: { e: [2], d: 1 }, b: null, a: '1' }))).toBe(ordered);
    expect(await hashOf(() => ({ b: null, a: '1', c: { d: 1, e: [3] } }))).not.toBe(ordered);
    expect(await hashOf(() => ({ b: 'y', a: 'x' }))).toBe(await hashOf(() => ({ a: 'x', b: 'y' })));
  });

  test('the quick way to a hash gives what the other one does', () => {
    for (const data of [{ b: 'x', a: null }, { a: 'x', b: 'y' }, { 10: 'a', 9: 'b', x: 'c' }, {}]) {
      const [quick] = toDrafts([{ key: 'k', data }], false);
      const [slow] = toDrafts([{ key: 'k', data: JSON.parse(canonicalJson(data)) }], false);
      expect(quick!.hash).toBe(slow!.hash);
    }
  });
});

describe('what must be there', () => {
  test('selectors', async () => {
    const select = { title: 'h1' };
    expect(await valuesOf({ select, require: ['h1', '.price', 'li:first-of-type', 'li + li'] })).toHaveLength(
      1,
    );
    expect(await refusal({ select, require: ['h1', '.none'] })).toBe('no element matches .none');
    expect(await refusal({ require: ['h1 + h1'] })).toBe('no element matches h1 + h1');
    await expect(compileReader(routeOf({ require: ['h1['] }), {})).rejects.toThrow(
      /route 'product'.*not valid CSS: h1\[/,
    );
  });

  test('fields', async () => {
    const must = (css: string) => ({ css, required: true });
    expect(await valuesOf({ select: { title: must('h1') } })).toEqual([{ title: 'Oak chair' }]);
    expect(
      await refusal({ select: { title: 'h1', a: must('.none'), b: { ...must('h1'), type: 'number' } } }),
    ).toBe('required fields are missing: a, b');
    expect(await refusal({ select: { a: must('.none') } })).toBe('required fields are missing: a');
    expect(await refusal({ select: { a: { ...must('.none'), all: true } } })).toBe(
      'required fields are missing: a',
    );
  });

  test('fields of objects, where there is an object', async () => {
    const item = (css: string) => ({
      css,
      all: true,
      fields: { text: '.x', id: { attr: 'id', required: true } },
    });
    const html = '<p><b class=x>1</b></p><p id=2><b class=x>2</b></p><p></p>';
    expect(await refusal({ select: { items: item('p') } }, {}, html)).toBe(
      'required fields are missing: items.id',
    );
    expect(await valuesOf({ select: { items: item('i'), b: 'b' } }, {}, html)).toEqual([
      { items: [], b: '1' },
    ]);
    const group = { fields: { a: { css: '.none', required: true } } };
    expect(await refusal({ select: { b: 'b', group } }, {}, html)).toBe(
      'required fields are missing: group.a',
    );
  });

  test('HTML, when something of it is required', async () => {
    const pdf = new Page(inputOf('%PDF', { contentType: 'application/pdf' }));
    for (const route of [
      { require: ['h1'] },
      { select: { g: { fields: { t: { css: 'h1', required: true } } } } },
    ])
      await expect(readWith(route, {}, pdf)).rejects.toThrow('application/pdf, not HTML');
  });

  test('before the handler runs', async () => {
    let calls = 0;
    const handler = () => {
      calls++;
    };
    await refusal({ require: ['.none'] }, { handler });
    expect(calls).toBe(0);
  });
});

describe('schema', () => {
  const schema = {
    type: 'object',
    properties: { title: { type: 'string', pattern: '^(\\w+ ?)+$' }, price: { required: ['amount'] } },
    required: ['title'],
  };

  test('JSON Schema', async () => {
    expect(await valuesOf({ select: SELECT, schema })).toEqual([RECORD]);
    const typed = { ...schema, properties: { price: { properties: { amount: { type: 'string' } } } } };
    expect(await refusal({ select: SELECT, schema: typed })).toBe('price.amount: must be string');
    expect(await refusal({ select: { none: 'h1' }, schema })).toBe(
      "the record must have required property 'title'",
    );
    const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', ...schema };
    expect(await valuesOf({ select: SELECT, schema: draft7 })).toEqual([RECORD]);
  });

  test('its patterns are linear too', async () => {
    const html = `<h1>${'a'.repeat(50_000)}!</h1>`;
    const spent = await cpuMsOf(async () => {
      const message = await refusal({ select: { title: 'h1' }, schema }, {}, html);
      expect(message).toMatch(/^title: must match pattern/);
    });
    expect(spent).toBeLessThan(5_000);
  });

  test.each([
    ['a wrong type', { type: 'objekt' }],
    ['a misspelt keyword', { propertys: {} }],
    ['a pattern that cannot be linear', { properties: { a: { pattern: '(?=a)' } } }],
    ['a reference to elsewhere', { $ref: 'https://other.example/schema.json' }],
  ])('%s shows when the job is loaded', async (_, wrong) => {
    await expect(compileReader(routeOf({ select: SELECT, schema: wrong }), {})).rejects.toThrow(
      /^the schema of route 'product' is not valid: /,
    );
  });

  test('a zod schema replaces the record by what it makes of it', async () => {
    const code = {
      schema: z.object({ title: z.string().transform((text) => text.toUpperCase()), price: z.unknown() }),
    };
    expect(await valuesOf({ select: SELECT }, code)).toEqual([{ title: 'OAK CHAIR', price: RECORD.price }]);
    const strict = { schema: z.strictObject({ title: z.number(), price: z.object({ amount: z.string() }) }) };
    expect(await refusal({ select: SELECT }, strict)).toMatch(
      /^title: Invalid input: .*; price\.amount: Invalid input: .*; the record Unrecognized key/,
    );
    const many = z.object(Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, z.string()])));
    expect(await refusal({ select: SELECT }, { schema: many })).toMatch(/; and 2 more$/);
    await expect(read({ select: SELECT }, { schema: z.unknown().transform(() => 5) })).rejects.toThrow(
      'the schema must return an object, got 5',
    );
  });
});
