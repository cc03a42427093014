import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { SeineError } from '../../../src/core/errors.ts';
import { defineJob } from '../../../src/job-file/define-job.ts';
import { handlersOf } from '../../../src/job-file/load-handlers.ts';
import { parseJob } from '../../../src/job-file/parse-job.ts';

const parse = (job: unknown) => parseJob(job, 'job.ts', 'unnamed');
const sources = ['https://a.example/'];

describe('code of a job', () => {
  const handler = () => ({ a: 1 });
  const clean = (record: Record<string, unknown>) => record;
  const schema = z.object({ a: z.number() });

  test('is taken out of the spec and kept by route', async () => {
    const job = defineJob({
      sources,
      routes: [
        { name: 'p', handler, clean, validate: () => true, dedupe: () => 'k', store: clean, schema },
        { name: 'q', select: { a: 'h1' }, schema },
        { name: 'r', select: { a: 'h1' }, schema: { type: 'object' } },
      ],
    });
    const { spec, handlers } = await parse(job);
    expect([...handlers.keys()]).toEqual(['p', 'q']);
    expect(Object.keys(handlers.get('p')!).sort()).toEqual(
      ['clean', 'dedupe', 'handler', 'schema', 'store', 'validate'].sort(),
    );
    expect(handlers.get('p')).toMatchObject({ handler, clean, schema });
    expect(handlers.get('q')).toEqual({ schema });
    expect(spec.routes.map((route) => route.schema)).toEqual([undefined, undefined, { type: 'object' }]);
    expect(structuredClone(spec)).toEqual(spec);
    expect(job.routes?.[0]).toHaveProperty('handler');
  });

  test('stays apart when the spec is parsed again', async () => {
    const job = defineJob({ sources, routes: [{ name: 'p', handler, key: 'sku' }] });
    const { spec, handlers } = await parse(job);
    expect((await parseJob(spec, 'the options', 'x', handlers)).spec).toEqual(spec);
    await expect(parse(spec)).rejects.toThrow("route 'p' has key, but no select, markdown or handler");
  });

  test('what has no code has none', () => {
    const routes = [
      null,
      'x',
      { handler: 5, name: 'p' },
      { handler },
      { name: 'q', schema: {} },
      { name: 5, handler },
    ];
    for (const definition of [null, undefined, 5, 'x', {}, { routes: 5 }, { routes }])
      expect(handlersOf(definition).size).toBe(0);
  });
});

describe('mistakes', () => {
  const route = (more: object) => ({ sources, routes: [{ name: 'p', select: { a: 'h1' }, ...more }] });

  test.each<[string, unknown, string]>([
    [
      'a handler that is a text',
      route({ handler: 'x' }),
      "job.ts: route 'p': handler must be a function, got string",
    ],
    ['a step that is a list', route({ clean: [] }), "route 'p': clean must be a function, got a list"],
    ['a step that is null', route({ store: null }), "route 'p': store must be a function, got null"],
    [
      'a schema that is a text',
      route({ schema: 'x' }),
      "route 'p': schema must be a JSON Schema or an object with safeParse",
    ],
    ['a schema of some other library', route({ schema: new Map() }), 'must be a JSON Schema'],
    ['a JSON Schema that is none', route({ schema: { type: 'x' } }), "the schema of route 'p' is not valid"],
    ['a key that is no field', route({ key: ['a', 'b'] }), "the key of route 'p' uses the unknown field 'b'"],
    [
      'steps without records',
      { sources, routes: [{ name: 'p', validate: () => true, key: 'a' }] },
      "route 'p' has key and validate, but no select",
    ],
    [
      'a schema without records',
      { sources, routes: [{ name: 'p', schema: {} }] },
      "route 'p' has schema, but no select",
    ],
    ['both key and dedupe', route({ key: 'a', dedupe: () => 'x' }), 'both key and dedupe'],
    [
      'a wrong selector',
      route({ select: { b: { css: 'x', fields: { c: '[' } } } }),
      "field 'b.c' of route 'p' is not valid CSS",
    ],
    ['a wrong regex', route({ select: { b: { regex: '(' } } }), "the regex of field 'b' of route 'p'"],
    [
      'a wrong required selector',
      route({ require: ['['] }),
      "the selector of `require` of route 'p' is not valid CSS: [",
    ],
    ['an unknown type', route({ select: { b: { css: 'x', type: 'colour' } } }), "route 'p': select.b"],
    ['an unknown option', route({ select: { b: { css: 'x', alll: true } } }), "route 'p': select.b"],
  ])('%s: one sentence that says where', async (_, job, message) => {
    const error = await parse(job).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(SeineError);
    expect((error as Error).message).toContain(message);
    expect((error as Error).message).not.toContain('\n');
  });

  test('a key that code makes is not known here', async () => {
    await parse(route({ key: 'b', clean: (record: object) => ({ ...record, b: 1 }) }));
    await parse(route({ key: 'b', schema: z.object({}).transform(() => ({ b: 1 })) }));
    await parse({ sources, routes: [{ name: 'p', key: 'title', markdown: true }] });
  });
});

test('types: a wrong field is an error of the compiler', () => {
  // Each comment is an error by itself when what follows is none.
  const jobs = [
    defineJob({
      sources,
      routes: [
        {
          name: 'p',
          select: {
            title: 'h1',
            price: { css: '.price', type: 'money', currency: 'EUR', required: true },
            offers: { css: 'li', all: true, fields: { id: '@id', more: { css: 'p', fields: { a: 'b' } } } },
          },
          schema: z.object({ title: z.string() }),
          handler: (page, selected) => ({ url: page.url, title: selected?.title }),
          clean: async (record, page) => (page.status === 200 ? { ...record } : null),
          validate: ({ title }) => (typeof title === 'string' ? null : 'no title'),
          dedupe: (record) => String(record.title),
          store: (record) => [record],
        },
      ],
    }),
    // @ts-expect-error a misspelt field of a route
    defineJob({ sources, routes: [{ name: 'p', selct: {} }] }),
    // @ts-expect-error a misspelt option of a field
    defineJob({ sources, routes: [{ name: 'p', select: { a: { css: 'x', al: true } } }] }),
    // @ts-expect-error an unknown type of field
    defineJob({ sources, routes: [{ name: 'p', select: { a: { css: 'x', type: 'colour' } } }] }),
    // @ts-expect-error a wrong field inside another
    defineJob({ sources, routes: [{ name: 'p', select: { a: { css: 'x', fields: { b: { css: 5 } } } } }] }),
    // @ts-expect-error a handler that is no function
    defineJob({ sources, routes: [{ name: 'p', handler: 'x' }] }),
    // @ts-expect-error pages have no such method
    defineJob({ sources, routes: [{ name: 'p', handler: (page) => page.titel() }] }),
    // @ts-expect-error a step that gives no record
    defineJob({ sources, routes: [{ name: 'p', clean: () => 5 }] }),
    // @ts-expect-error a key that is a number
    defineJob({ sources, routes: [{ name: 'p', dedupe: () => 5 }] }),
    // @ts-expect-error a schema that is a text
    defineJob({ sources, routes: [{ name: 'p', schema: 'x' }] }),
  ];
  expect(jobs).toHaveLength(10);
});
