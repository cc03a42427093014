import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import { jobTypes, TYPES_FILE } from '../../../scripts/build/write-types.ts';
import { jobFields } from '../../../scripts/docs/job-fields.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import { defineJob, type JobDefinition, type Money } from '../../../src/job-file/define-job.ts';
import { jobJsonSchema } from '../../../src/job-file/json-schema.ts';
import { CODE_NAMES } from '../../../src/worker/job/route-code.ts';
import { Page } from '../../../src/worker/page/page.ts';
import { type LanguageServer, openLanguageServer } from '../../support/language-server.ts';

/** What editors know of a job: the compiler checks the types of this file, the tests the texts. */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

test('the types have the fields and the texts of the schema', () => {
  // `npx node scripts/build/write-types.ts && npx biome format --write src/job-file/job-input.ts` puts it right.
  const bare = (text: string) => text.replace(/[\s()|;,]/g, '');
  const written = readFileSync(`${ROOT}/${TYPES_FILE}`, 'utf8');
  expect(bare(written)).toBe(bare(jobTypes()));
});

test('every field has a text', () => {
  const lines = readFileSync(`${ROOT}/${TYPES_FILE}`, 'utf8').split('\n');
  const silent = lines.filter(
    (line, index) => /^\s+[\w$"]+\??:( |$)/.test(line) && !/\*\/\s*$/.test(lines[index - 1]!),
  );
  expect(silent).toEqual([]);
});

/** A job with nothing but the field at this path, which is marked. */
function written(path: string, mark = '/*here*/', value = 'null as never'): string {
  const [first = '', ...rest] = path.split('.');
  const inner = rest.length === 0 ? value : written(rest.join('.'), mark, value);
  const name = first.replace('[]', '');
  const shown = `${rest.length === 0 ? mark : ''}${name === '*' ? 'any' : name}`;
  return `{ ${shown}: ${first.endsWith('[]') ? `[${inner}]` : inner} }`;
}

/** What of a job is an object with fields, and those: the job itself has the empty path. */
function objectsOf(fields: readonly { path: string; doc: string }[]): Map<string, Map<string, string>> {
  const objects = new Map<string, Map<string, string>>();
  for (const { path, doc } of fields) {
    const end = path.lastIndexOf('.');
    const parent = path.slice(0, Math.max(0, end));
    objects.set(parent, (objects.get(parent) ?? new Map()).set(path.slice(end + 1), doc));
  }
  return objects;
}

describe('what an editor shows under the pointer', () => {
  const plain = (words: string) => words.replace(/[\s`\\]/g, '');
  const shownOf = (name: string, indent: string) =>
    editor.hover(text.indexOf(`\n${indent}${name}: value`) + 1 + indent.length);
  const fields = jobFields().filter(({ path }) => /^(routes\[\]\.)?\$?\w+$/.test(path));
  const topLevel = Object.entries(jobJsonSchema().properties as Record<string, { description?: string }>);
  const groups = topLevel
    .filter(([name]) => !fields.some(({ path }) => path === name))
    .map(([path, { description = '' }]) => ({ path, doc: description }));
  const own = [...fields.filter(({ path }) => !path.startsWith('routes[]')), ...groups];
  // Of a schema, TypeScript knows more than the schema of jobs.
  const ofRoute = fields.filter(({ path }) => path.startsWith('routes[]') && path !== 'routes[].schema');
  const nameOf = ({ path }: { path: string }) => path.replace('routes[].', '');
  const ofCode = ['schema', ...CODE_NAMES];
  const page = Object.getOwnPropertyNames(Page.prototype).filter((name) => name !== 'constructor');
  const text = [
    `import { defineJob } from '${ROOT}/src/job-file/define-job.ts';`,
    'const value = null as never;',
    'defineJob({',
    ...own.filter(({ path }) => path !== 'routes').map(({ path }) => `  ${path}: value,`),
    '  routes: [{',
    ...[...ofRoute.map(nameOf), ...ofCode].map((name) => `    ${name}: value,`),
    `    handler(page) { ${['url', 'status', ...page].map((name) => `page.${name};`).join(' ')} },`,
    '  }],',
    '});',
  ].join('\n');
  const inSelect = jobFields().filter(({ path }) => path.startsWith('routes[].select.*.'));
  const all = [
    ...jobFields(),
    ...groups,
    ...inSelect.map(({ path, doc }) => ({ path: path.replace('select.*', 'select.*.fields.*'), doc })),
  ];
  // `follow` may be a text, and a text has a `match` of its own: an editor that completes it shows the text.
  const nested = all.filter(
    ({ path }) => /[.[]/.test(path.replace(/^routes\[\]\./, '')) && path !== 'follow[].match',
  );
  const nestedText = [text.split('\n')[0], ...nested.map(({ path }) => `defineJob(${written(path)});`)].join(
    '\n',
  );
  const selectText = `${text.split('\n')[0]}
    defineJob({ routes: [{ name: 'one', select: {
      sku: '.sku',
      price: { /*css*/css: '.price', /*attr*/attr: 'content', /*type*/type: 'money', /*required*/required: true },
      at: { /*regex*/regex: 'at (.*)', /*type*/type: 'date', /*dayFirst*/dayFirst: false },
      offers: { /*css*/css: '.offer', /*all*/all: true, /*fields*/fields: {
        seller: '.seller',
        name: { /*meta*/meta: 'og:title', /*all*/all: true },
        parts: { /*css*/css: 'li', /*fields*/fields: { weight: { /*css*/css: 'b', /*decimal*/decimal: ',' } } },
      } },
    }, handler(page, found) { return found?.offers[0]?.parts?.weight; } }] });`;
  // Of `politeness.hosts` and its like, a name stands for all.
  const emptyText = [
    text.split('\n')[0],
    ...[...objectsOf(all).keys()].map((path) =>
      path === '' ? 'defineJob({ /*here*/ });' : `defineJob(${written(path, '', '{ /*here*/ }')});`,
    ),
  ].join('\n');
  const open: LanguageServer[] = [];
  const openEditor = async (name: string, shown: string) => {
    const server = await openLanguageServer(join(tmpdir(), 'seine-hover', name), shown);
    open.push(server);
    return server;
  };
  let editor: LanguageServer;
  let nestedEditor: LanguageServer;
  let selectEditor: LanguageServer;
  let emptyEditor: LanguageServer;

  beforeAll(async () => {
    editor = await openEditor('job.ts', text);
    nestedEditor = await openEditor('nested.ts', nestedText);
    selectEditor = await openEditor('select.ts', selectText);
    emptyEditor = await openEditor('empty.ts', emptyText);
  });

  afterAll(() => {
    for (const server of open) server.close();
  });

  test('says what each field of a job and of a route is for', async () => {
    for (const { path, doc } of own) {
      expect(doc, path).not.toBe('');
      const shown =
        path === 'routes' ? await editor.hover(text.indexOf('routes:')) : await shownOf(path, '  ');
      expect(plain(shown), path).toContain(plain(doc));
    }
    for (const field of ofRoute)
      expect(plain(await shownOf(nameOf(field), '    ')), field.path).toContain(plain(field.doc));
    for (const name of ofCode) expect(await shownOf(name, '    '), name).toMatch(/[A-Z][^.]*\.\s*$/);
  });

  test('says what each field inside of another is for', async () => {
    expect(nested.length).toBeGreaterThan(100);
    let at = 0;
    for (const { path, doc } of nested) {
      at = nestedText.indexOf('/*here*/', at) + '/*here*/'.length;
      const shown = await nestedEditor.hover(at);
      expect(plain(shown), path).toContain(plain(doc));
    }
  });

  test('says what the fields of `select` are for where they have values, at any depth', async () => {
    const marks = [...selectText.matchAll(/\/\*(\w+)\*\//g)];
    expect(marks.length).toBeGreaterThan(10);
    for (const { 0: mark, 1: name, index } of marks) {
      const { doc } = inSelect.find(({ path }) => path.endsWith(`.${name}`))!;
      expect(plain(await selectEditor.hover(index + mark.length)), name).toContain(plain(doc));
    }
  });

  test('says it beside each name that it completes', async () => {
    const objects = objectsOf(all);
    expect(objects.size).toBeGreaterThan(20);
    let at = 0;
    for (const [path, fields] of objects) {
      at = emptyText.indexOf('/*here*/', at) + '/*here*/'.length;
      const offered = await emptyEditor.complete(at, [...fields.keys()]);
      for (const [name, doc] of fields)
        if (path !== 'routes[]' || name !== 'schema')
          expect(plain(offered.get(name) ?? 'is not offered'), `${path}.${name}`).toContain(plain(doc));
    }
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
  // @ts-expect-error a type that no field has
  defineJob({ sources: 'https://shop.example/', routes: [{ name: 'x', select: { a: { type: 'mony' } } }] });
  // @ts-expect-error a name that no field has
  defineJob({ sources: 'https://shop.example/', routes: [{ name: 'x', select: { a: { csss: 'h1' } } }] });
});

test('what the schema takes is a job, and the other way round', () => {
  const take = (_job: JobDefinition): void => {};
  const input: JobInput = { sources: ['https://shop.example/'], follow: true };
  take(input);
  const job: JobDefinition = { sources: 'https://shop.example/', politeness: { rate: 'max' } };
  expect(job).toBeDefined();
});
