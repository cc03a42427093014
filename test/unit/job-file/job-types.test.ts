import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import { jobFields } from '../../../scripts/job-fields.ts';
import { jobTypes, TYPES_FILE } from '../../../scripts/write-types.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import { defineJob, type JobDefinition, type Money } from '../../../src/job-file/define-job.ts';
import { CODE_NAMES } from '../../../src/worker/job/route-code.ts';
import { Page } from '../../../src/worker/page/page.ts';
import { type LanguageServer, openLanguageServer } from '../../support/language-server.ts';

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

/** A job with nothing but the field at this path, which is marked. */
function written(path: string): string {
  const [first = '', ...rest] = path.split('.');
  const inner = rest.length === 0 ? 'null as never' : written(rest.join('.'));
  const name = first.replace('[]', '');
  const mark = rest.length === 0 ? '/*here*/' : '';
  return `{ ${mark}${name === '*' ? 'any' : name}: ${first.endsWith('[]') ? `[${inner}]` : inner} }`;
}

describe('what an editor shows under the pointer', () => {
  const plain = (words: string) => words.replace(/[\s`]/g, '');
  const shownOf = (name: string, indent: string) =>
    editor.hover(text.indexOf(`\n${indent}${name}: value`) + 1 + indent.length);
  const fields = jobFields().filter(({ path }) => /^(routes\[\]\.)?\w+$/.test(path) && path !== 'routes');
  const own = fields.filter(({ path }) => !path.startsWith('routes'));
  // Of a schema, TypeScript knows more than the schema of jobs.
  const ofRoute = fields.filter(({ path }) => path.startsWith('routes') && path !== 'routes[].schema');
  const nameOf = ({ path }: { path: string }) => path.replace('routes[].', '');
  const ofCode = ['schema', ...CODE_NAMES];
  const page = Object.getOwnPropertyNames(Page.prototype).filter((name) => name !== 'constructor');
  const text = [
    `import { defineJob } from '${ROOT}/src/job-file/define-job.ts';`,
    'const value = null as never;',
    'defineJob({',
    ...own.map(({ path }) => `  ${path}: value,`),
    '  politeness: { rate: 2 },',
    '  routes: [{',
    ...[...ofRoute.map(nameOf), ...ofCode].map((name) => `    ${name}: value,`),
    `    handler(page) { ${['url', 'status', ...page].map((name) => `page.${name};`).join(' ')} },`,
    '  }],',
    '});',
  ].join('\n');
  // `follow` may be a text, and a text has a `match` of its own. The fields of `select` have a test below.
  const nested = jobFields().filter(
    ({ path }) =>
      /[.[]/.test(path.replace(/^routes\[\]\./, '')) &&
      !path.startsWith('routes[].select.') &&
      path !== 'follow[].match',
  );
  const nestedText = [text.split('\n')[0], ...nested.map(({ path }) => `defineJob(${written(path)});`)].join(
    '\n',
  );
  let editor: LanguageServer;
  let nestedEditor: LanguageServer;

  beforeAll(async () => {
    editor = await openLanguageServer(join(tmpdir(), 'seine-hover', 'job.ts'), text);
    nestedEditor = await openLanguageServer(join(tmpdir(), 'seine-hover', 'nested.ts'), nestedText);
  });

  afterAll(() => {
    editor?.close();
    nestedEditor?.close();
  });

  test('says what each field of a job and of a route is for', async () => {
    for (const field of own)
      expect(plain(await shownOf(field.path, '  ')), field.path).toContain(plain(field.doc));
    for (const field of ofRoute)
      expect(plain(await shownOf(nameOf(field), '    ')), field.path).toContain(plain(field.doc));
    for (const name of ofCode) expect(await shownOf(name, '    '), name).toMatch(/[A-Z][^.]*\.\s*$/);
  });

  test('says what each field inside of another is for', async () => {
    expect(nested.length).toBeGreaterThan(100);
    let at = 0;
    for (const { path, doc } of nested) {
      at = nestedText.indexOf('/*here*/', at) + '/*here*/'.length;
      const shown = (await nestedEditor.hover(at)).replace('*\\/', '*/');
      expect(plain(shown), path).toContain(plain(doc));
    }
  });

  test('says at `select` what a field of a record may have', async () => {
    const ofSelect = jobFields().filter(({ path }) => path.startsWith('routes[].select.*.'));
    expect(ofSelect.length).toBeGreaterThan(10);
    const shown = plain(await shownOf('select', '    '));
    for (const { path, doc } of ofSelect) expect(shown).toContain(`-${path.split('.').at(-1)}:${plain(doc)}`);
  });

  test('says what each property and method of a page is', async () => {
    for (const name of ['url', 'status', ...page]) {
      const shown = await editor.hover(text.indexOf(`page.${name};`) + 5);
      expect(shown.split('\n').join(' '), name).toMatch(/[A-Z].*\.\s*$/);
    }
  });
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
