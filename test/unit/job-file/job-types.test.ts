import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, expectTypeOf, test } from 'vitest';
import { jobTypes, TYPES_FILE } from '../../../scripts/write-types.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import { defineJob, type JobDefinition, type Money } from '../../../src/job-file/define-job.ts';

/** What editors know of a job: the compiler checks the types of this file, the tests the texts. */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

test('the types have the fields and the texts of the schema', () => {
  // `npx node scripts/write-types.ts && npx biome format --write src/job-file/job-input.ts` puts it right.
  const bare = (text: string) => text.replace(/[\s()|;,]/g, '');
  const written = readFileSync(`${ROOT}/${TYPES_FILE}`, 'utf8');
  expect(bare(written)).toBe(bare(jobTypes()));
});

test('every field has a text', () => {
  const lines = readFileSync(`${ROOT}/${TYPES_FILE}`, 'utf8').split('\n');
  const silent = lines.filter(
    (line, index) => /^\s+[\w$"]+\??: /.test(line) && !/\*\/\s*$/.test(lines[index - 1]!),
  );
  expect(silent).toEqual([]);
});

test('a handler knows what select finds', () => {
  const job = defineJob({
    sources: 'https://shop.example/',
    routes: [
      {
        name: 'product',
        match: '/product/*',
        select: {
          sku: '.sku',
          price: { css: '.price', type: 'money', required: true },
          stock: { css: '.stock', type: 'number' },
          tags: { css: '.tag', all: true },
          offers: {
            css: '.offer',
            all: true,
            fields: { seller: '.seller', at: { css: 'time', type: 'date' } },
          },
        },
        handler(page, found) {
          expectTypeOf(page.url).toEqualTypeOf<string>();
          if (!found) return null;
          expectTypeOf(found.sku).toEqualTypeOf<string | null>();
          expectTypeOf(found.price).toEqualTypeOf<Money>();
          expectTypeOf(found.stock).toEqualTypeOf<number | null>();
          expectTypeOf(found.tags).toEqualTypeOf<string[]>();
          expectTypeOf(found.offers[0]!.seller).toEqualTypeOf<string | null>();
          // @ts-expect-error there is no such field
          void found.skuu;
          return found;
        },
      },
      {
        name: 'other',
        handler: (_, found) => {
          expectTypeOf(found?.anything).toEqualTypeOf<unknown>();
          return null;
        },
      },
    ],
  });
  expect(job.routes).toHaveLength(2);
  // @ts-expect-error a field that no job has
  defineJob({ sources: 'https://shop.example/', sorces: 1 });
  // @ts-expect-error one that no route has
  defineJob({ sources: 'https://shop.example/', routes: [{ name: 'x', selct: {} }] });
});

test('what the schema takes is a job, and the other way round', () => {
  const take = (_job: JobDefinition): void => {};
  const input: JobInput = { sources: ['https://shop.example/'], follow: true };
  take(input);
  const job: JobDefinition = { sources: 'https://shop.example/', politeness: { rate: 'max' } };
  expect(job).toBeDefined();
});
