import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkKey } from '../../../../src/blobs/blob-key.ts';
import { archiveKeyOf } from '../../../../src/coordinator/plan/open-batch.ts';
import { SeineError } from '../../../../src/core/errors.ts';
import { followsRedirects, gapMsOf, type JobInput, parallelOf } from '../../../../src/core/job-schema/job.ts';
import { jobSchema } from '../../../../src/core/job-schema/job-schema.ts';
import { jobJsonSchema } from '../../../../src/job-file/json-schema.ts';
import { hashOfSpec, parseJob } from '../../../../src/job-file/parse-job.ts';
import { specOf } from '../../../support/fixtures.ts';

const parse = (job: unknown) => parseJob(job, 'job.ts', 'unnamed');
const sources = ['https://a.example/'];

describe('what a job may say', () => {
  test('a source is enough; everything else has a default', async () => {
    const { spec, handlers } = await parse({ sources: 'https://a.example/' });
    expect(spec).toMatchObject({ name: 'unnamed', sources, routes: [], follow: [], redirects: 'auto' });
    expect(spec.politeness).toMatchObject({ rate: 4, parallel: null, robots: true });
    expect(spec.retry.attempts).toBe(4);
    expect(spec.limits.pages).toBeNull();
    expect(spec).toMatchObject({ archive: true, allowPrivate: false });
    expect(handlers.size).toBe(0);
  });

  test('a spec is itself a job, and stays as it is', async () => {
    const input: JobInput = {
      name: 'shop',
      sources: ['https://a.example/', { file: 'list.csv', urlColumn: 'link' }],
      routes: [
        { name: 'p', match: '/p/*', select: { title: 'h1', images: { css: 'img', attr: 'src', all: true } } },
      ],
      follow: [{ match: '/p/*', route: 'p', priority: 3 }, { within: 'site' }],
      limits: { pages: 10 },
    };
    const { spec } = await parse(input);
    expect((await parse(spec)).spec).toEqual(spec);
    expect((await parse(JSON.parse(JSON.stringify(spec)))).spec).toEqual(spec);
  });

  test.each([
    [false, []],
    [true, [{ within: 'host', priority: 0 }]],
    ['site', [{ within: 'site', priority: 0 }]],
    [[{ match: '/a/*' }], [{ within: 'host', match: ['/a/*'], priority: 0 }]],
    [[], []],
  ])('follow %j', async (follow, rules) => {
    expect((await parse({ sources, follow })).spec.follow).toEqual(rules);
  });

  test.each<[string, unknown, RegExp]>([
    ['no sources', {}, /sources/],
    ['an empty list of sources', { sources: [] }, /sources/],
    ['an unknown field', { sources, sorces: 1 }, /sorces/],
    ['an unknown nested field', { sources, limits: { page: 1 } }, /limits.*page/],
    ['a wrong type', { sources, batchSize: 'many' }, /batchSize/],
    ['a number out of range', { sources, batchSize: 100_000 }, /batchSize/],
    ['a rate of nothing', { sources, politeness: { rate: 0 } }, /politeness\.rate/],
    ['a rate that is no number', { sources, politeness: { rate: Number.NaN } }, /politeness\.rate/],
    ['an endless rate', { sources, politeness: { rate: Number.POSITIVE_INFINITY } }, /politeness\.rate/],
    ['a bad name', { sources, name: '../etc' }, /name/],
    ['a bad selector', { sources, routes: [{ name: 'p', select: { t: 'h1[' } }] }, /'t'.*h1\[/],
    ['two routes of a name', { sources, routes: [{ name: 'p' }, { name: 'p' }] }, /same name/],
    ['a rule to an unknown route', { sources, follow: [{ route: 'x' }] }, /'x'/],
    ['a rule from an unknown route', { sources, follow: [{ from: 'y' }] }, /'y'/],
    ['nothing', undefined, /undefined/],
    ['null', null, /null/],
    ['a text', 'https://a.example/', /string/],
    ['a list', [], /job\.ts/],
  ])('%s is refused in one sentence', async (_, job, message) => {
    const error = await parse(job).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(SeineError);
    const text = (error as SeineError).message;
    expect(text).toMatch(message);
    expect(text).not.toContain('\n');
    expect(text.length).toBeLessThan(500);
  });

  test('many mistakes are counted, and only the first few shown', async () => {
    const job = { sources, a: 1, batchSize: 0, archive: 3, follow: 4, routes: 5, limits: 6 };
    await expect(parse(job)).rejects.toThrow(/and \d more$/);
  });

  test('whatever is given, the answer is a job or an operator error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything(), fc.boolean(), async (given, inRoute) => {
        const definition = inRoute
          ? { sources, routes: [{ name: 'p', schema: given, select: given }] }
          : given;
        const error = await parse(definition).catch((caught: unknown) => caught);
        if (error instanceof Error) expect(error).toBeInstanceOf(SeineError);
      }),
      { numRuns: 300 },
    );
  });

  test('every name that is allowed can name a folder of pages', () => {
    const name = fc.string({
      unit: fc.constantFrom('a', 'Z', '0', '.', '-', '_'),
      minLength: 1,
      maxLength: 64,
    });
    fc.assert(
      fc.property(name, (text) => {
        if (!jobSchema.safeParse({ sources, name: text }).success) return;
        expect(() => checkKey(`${archiveKeyOf({ name: text, run: 1 }, 1)}-0.warc.gz`)).not.toThrow();
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('what a spec means', () => {
  test('rates are gaps', () => {
    expect(gapMsOf(specOf())).toBe(250);
    expect(gapMsOf(specOf({ politeness: { rate: 0.5 } }))).toBe(2_000);
    expect(gapMsOf(specOf({ politeness: { rate: 'max' } }))).toBe(0);
  });

  test('parallelism has a default by rate', () => {
    expect(parallelOf(specOf())).toBe(4);
    expect(parallelOf(specOf({ politeness: { rate: 'max' } }))).toBe(32);
    expect(parallelOf(specOf({ politeness: { rate: 'max', parallel: 1 } }))).toBe(1);
  });

  test.each([
    ['auto', false, true],
    ['auto', true, false],
    ['follow', true, true],
    ['discover', false, false],
  ] as const)('redirects %s with follow %s: %s', (redirects, follow, expected) => {
    expect(followsRedirects(specOf({ redirects, follow }))).toBe(expected);
  });

  test('the hash changes with the spec and the code, and with nothing else', () => {
    const spec = specOf();
    expect(hashOfSpec(spec, null)).toBe(hashOfSpec(structuredClone(spec), null));
    expect(hashOfSpec(spec, null)).not.toBe(hashOfSpec({ ...spec, batchSize: 61 }, null));
    expect(hashOfSpec(spec, null)).not.toBe(hashOfSpec(spec, 'bundles/1.mjs'));
  });
});

describe('the JSON Schema', () => {
  const schema = jobJsonSchema() as {
    properties: Record<string, { description?: string }>;
    required?: string[];
  };

  test('has every field of a job, and asks for none: a job that is kept open needs no sources', () => {
    expect(Object.keys(schema.properties).sort()).toEqual(Object.keys(jobSchema.shape).sort());
    expect(schema.required).toBeUndefined();
    expect(JSON.stringify(schema)).toContain('urlColumn');
  });

  test('is for what people write, so fields with a default are optional', () => {
    expect(JSON.stringify(schema.properties.limits)).not.toContain('"required"');
  });
});
