import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkKey } from '../../../src/blobs/blob-key.ts';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import { archiveKeyOf } from '../../../src/coordinator/plan/open-batch.ts';
import { SeineError } from '../../../src/core/errors.ts';
import {
  asItIs,
  bundleKeyOf,
  handlersOf,
  importCode,
  loadHandlers,
} from '../../../src/job-file/load-handlers.ts';
import { isJobFile, loadJobFile } from '../../../src/job-file/load-job-file.ts';
import { describeCodeError, placesOfError } from '../../../src/worker/job/error-place.ts';
import { temporaryFolder } from '../../support/fixtures.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());

async function fileOf(name: string, text: string): Promise<string> {
  const path = join(folder.dir, name);
  await writeFile(path, text);
  return path;
}

async function errorOf(path: string): Promise<SeineError> {
  const error = await loadJobFile(path, asItIs).then(
    () => null,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(SeineError);
  expect((error as SeineError).message).not.toContain('\n');
  return error as SeineError;
}

describe('data files', () => {
  test.each([
    ['shop.json', '{"sources":["https://a.example/","list.txt"],"follow":"site"}'],
    ['shop.yaml', 'sources:\n  - https://a.example/\n  - list.txt\nfollow: site\n'],
    ['shop.yml', 'sources: [https://a.example/, list.txt]\nfollow: site\n'],
    ['shop.job.yaml', 'sources: [https://a.example/, list.txt]\nfollow: site\n'],
  ])('%s: named by the file, with files beside it', async (name, text) => {
    const { spec, code, handlers } = await loadJobFile(await fileOf(name, text), asItIs);
    expect(spec).toMatchObject({ name: 'shop', follow: [{ within: 'site' }] });
    expect(spec.sources).toEqual(['https://a.example/', join(folder.dir, 'list.txt')]);
    expect(code).toBeNull();
    expect(handlers.size).toBe(0);
  });

  test('a name of its own wins, and files are meant from the job file, not from here', async () => {
    await mkdir(join(folder.dir, 'deep'), { recursive: true });
    const text = JSON.stringify({
      name: 'other',
      $schema: './x.json',
      sources: [{ file: '../in.csv', urlColumn: 'u' }],
    });
    const { spec } = await loadJobFile(await fileOf('deep/x.json', text), asItIs);
    expect(spec.name).toBe('other');
    expect(spec.sources).toMatchObject([{ file: join(folder.dir, 'in.csv'), urlColumn: 'u' }]);
    expect(spec).not.toHaveProperty('$schema');
  });

  test.each([
    '.hidden.yaml',
    'a..b.yaml',
    '-.yaml',
    'Ünicode näme.yaml',
    `${'x'.repeat(120)}.yaml`,
    '.job.yaml',
    '_.yaml',
  ])('%s gives a name that a job may have and a folder of pages too', async (name) => {
    const { spec } = await loadJobFile(await fileOf(name, 'sources: https://a.example/'), asItIs);
    expect(spec.name).toMatch(/^[a-z0-9][a-z0-9._-]{0,63}$/i);
    expect(() => checkKey(`${archiveKeyOf({ name: spec.name, run: 1 }, 1)}-0.warc.gz`)).not.toThrow();
  });

  test.each([
    ['broken.json', '{"sources":', /broken\.json/],
    ['broken.yaml', 'sources: [a\nb: }', /broken\.yaml/],
    ['wrong.json', '{"sources":"https://a.example/","batchSize":"x"}', /wrong\.json.*batchSize/],
    ['broken-line.json', '{\n  "sources": "x",\n  oops\n}', /broken-line\.json:3:3: /],
    ['broken-line.yaml', 'sources: x\nlimits: {pages: 1\n', /broken-line\.yaml:3:1: /],
    ['empty.yaml', ' \n', /empty\.yaml is empty$/],
    ['empty.json', '', /empty\.json is empty$/],
    ['none.yaml', 'follow: true', /none\.yaml: the job has no sources/],
    ['none.json', '{"sources": []}', /none\.json: the job has no sources/],
    [
      'field.yaml',
      'sources: x\nlimits:\n  page: 5\n',
      /field\.yaml:3:3: limits\.page: unknown field; did you mean pages\?$/,
    ],
    [
      'field.json',
      '{\n  "sources": "https://a.example/",\n  "politenes": {}\n}',
      /field\.json:3:3: politenes: unknown field; did you mean politeness\?$/,
    ],
    [
      'rate.yaml',
      'sources: x\npoliteness:\n  rate: fast\n',
      /rate\.yaml:3:9: politeness\.rate: expected a number or "max", got "fast"$/,
    ],
    [
      'rate-zero.yaml',
      'sources: x\npoliteness: {rate: 0}\n',
      /rate-zero\.yaml:2:\d+: politeness\.rate: must be more than 0, got 0$/,
    ],
    [
      'kind.yaml',
      'sources: x\nroutes:\n  - name: product\n    kind: pagee\n',
      /kind\.yaml:4:11: route 'product': kind: expected "page", "media" or "sitemap", got "pagee"; did you mean page\?$/,
    ],
    [
      'nested.yaml',
      'sources: x\nroutes:\n  - name: product\n    select:\n      price:\n        csss: .price\n',
      /nested\.yaml:6:9: route 'product': select\.price\.csss: unknown field; did you mean css\?$/,
    ],
    [
      'source.yaml',
      'sources:\n  - file: a.csv\n    urlColum: u\n',
      /source\.yaml:3:5: sources\.0\.urlColum: unknown field; did you mean urlColumn\?$/,
    ],
    [
      'selector.yaml',
      'sources: https://a.example/\nroutes:\n  - name: product\n    select:\n      title: h1..title@id\n',
      /selector\.yaml:5:14: the selector of field 'title' of route 'product' is not valid CSS: h1\.\.title \(\. is followed by \.\)$/,
    ],
    [
      'regex.yaml',
      'sources: https://a.example/\nroutes:\n  - name: p\n    select: {t: {regex: "(a"}}\n',
      /regex\.yaml:4:25: the regex of field 't' of route 'p' is not a regular expression/,
    ],
    [
      'twice.yaml',
      'sources: https://a.example/\nroutes:\n  - {name: p, match: /a}\n  - {name: p, match: /b}\n',
      /twice\.yaml:3:12: two routes have the same name: p$/,
    ],
    [
      'schedule.yaml',
      'sources: https://a.example/\nschedule: every day\n',
      /schedule\.yaml:2:11: invalid schedule 'every day': it needs five, six or seven parts with spaces between$/,
    ],
    [
      'scheme.yaml',
      'sources: htp://a.example/\n',
      /scheme\.yaml:1:10: sources: not an http\(s\) URL: htp:\/\/a\.example\/$/,
    ],
    [
      'combinator.json',
      '{"sources": "https://a.example/",\n "follow": [{"css": "nav >"}]}',
      /combinator\.json:2:21: a follow rule has a selector that is not valid CSS: nav > \(nothing follows >\)$/,
    ],
    [
      'from.yaml',
      'sources: https://a.example/\nroutes: [{name: product}]\nfollow:\n  - from: prodcut\n',
      /from\.yaml:4:11: a follow rule uses the unknown route 'prodcut'; did you mean product\?$/,
    ],
    ['text.yaml', 'just text', /text\.yaml.*string/],
    ['alias.yaml', 'sources: *nothing', /alias\.yaml/],
    ['tag.yaml', 'sources: !!js/function https://a.example/', /tag\.yaml.*Unresolved tag/],
  ])('%s: one sentence that names the file', async (name, text, message) => {
    const error = await errorOf(await fileOf(name, text));
    expect(error.message).toMatch(message);
    expect(error.exit).toBe('bad-input');
  });

  test('a file that is not there, or is a folder', async () => {
    expect((await errorOf(join(folder.dir, 'absent.json'))).message).toMatch(/no such file/);
    await mkdir(join(folder.dir, 'folder.json'), { recursive: true });
    expect((await errorOf(join(folder.dir, 'folder.json'))).message).toMatch(
      /folder\.json is a folder, not a job file$/,
    );
  });

  test('aliases that multiply do not fill the memory', async () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let level = 1; level < 12; level++) {
      lines.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')}]`);
    }
    const bomb = await fileOf('bomb.yaml', `${lines.join('\n')}\nsources: https://a.example/\n`);
    // Not the names, which no job has either.
    expect((await errorOf(bomb)).message).toMatch(/alias/);
  });
});

describe('code files', () => {
  test('TypeScript, with imports of its own and of the package, becomes one module', async () => {
    await fileOf('prices.ts', 'export const parsePrice = (text: string): number => Number(text.slice(1));');
    const path = await fileOf(
      'typed.ts',
      `import { defineJob } from 'seine';
       import { parsePrice } from './prices.ts';
       export default defineJob({
         sources: ['https://a.example/'],
         routes: [{ name: 'p', match: '/p/*', handler: (page) => ({ price: parsePrice(page.textOf('.price') ?? '$0') }) }],
       });`,
    );
    const { spec, code, handlers } = await loadJobFile(path, asItIs);
    expect(spec).toMatchObject({ name: 'typed', routes: [{ name: 'p' }] });
    expect([...handlers.keys()]).toEqual(['p']);
    const { handler } = handlersOf(await importCode(code!)).get('p')!;
    expect(handler!({ textOf: () => '$7.5' } as never, null)).toEqual({ price: 7.5 });
  });

  test('steps and schema objects travel with the code', async () => {
    const path = await fileOf(
      'steps.mjs',
      `export default { sources: 'https://a.example/', routes: [
        { name: 'p', select: { a: 'h1' }, clean: (record) => ({ ...record, b: 1 }) },
        { name: 'q', select: { a: 'h1' }, schema: { safeParse: (data) => ({ success: true, data }) } },
        { name: 'r', select: { a: 'h1' }, schema: { type: 'object' } },
      ] };`,
    );
    const { spec, code } = await loadJobFile(path, asItIs);
    const stored = handlersOf(await importCode(code!));
    expect(stored.get('p')!.clean!({ a: 2 }, {} as never)).toEqual({ a: 2, b: 1 });
    expect(stored.get('q')!.schema!.safeParse(3)).toEqual({ success: true, data: 3 });
    expect(stored.has('r')).toBe(false);
    expect(spec.routes.map(({ schema }) => schema)).toEqual([undefined, undefined, { type: 'object' }]);
  });

  test('code without handlers is only a spec', async () => {
    const path = await fileOf('plain.mjs', "export default { sources: 'https://a.example/' };");
    expect(await loadJobFile(path, asItIs)).toMatchObject({ code: null, spec: { name: 'plain' } });
  });

  test.each([
    ['syntax.ts', 'export default {\n  sources: [,,\n', /syntax\.ts:\d+:\d+/],
    ['missing.ts', "import { x } from './not-there.ts';\nexport default x;", /missing\.ts:1:\d+.*not-there/],
    ['throws.mjs', "throw new Error('boom');", /throws\.mjs.*boom/],
    [
      'nodefault.ts',
      "export const job = { sources: 'https://a.example/' };",
      /nodefault\.ts has no default export$/,
    ],
    [
      'frames.ts',
      `const parse = (text: string) => {\n  throw new Error('no ' + text);\n};\nexport default { sources: parse('list') };`,
      /^cannot load .*frames\.ts: no list \(.*frames\.ts:2, called from .*frames\.ts:4\)$/,
    ],
    [
      'step.ts',
      "export default { sources: 'https://a.example/', routes: [{ name: 'product', select: { a: 'h1' }, clean: 'trim' }] };",
      /step\.ts: route 'product': clean must be a function, got string/,
    ],
    [
      'mistake.ts',
      "export default { sources: 'https://a.example/', folow: true };",
      /mistake\.ts: folow: unknown field; did you mean follow\?$/,
    ],
  ])('%s: one sentence that names the place', async (name, text, message) => {
    expect((await errorOf(await fileOf(name, text))).message).toMatch(message);
  });

  test('what is a job file', () => {
    for (const name of ['a.ts', 'a.mts', 'a.js', 'a.mjs', 'a.json', 'a.YAML', 'a.yml'])
      expect(isJobFile(name)).toBe(true);
    for (const name of [
      'a.txt',
      'a.jsonl',
      'a.csv',
      'a',
      'https://a.example/',
      'https://a.example/job.yaml',
      'ts',
    ])
      expect(isJobFile(name)).toBe(false);
  });
});

describe('stored code', () => {
  test('comes back as it was, or not at all', async () => {
    const blobs = await openFolderBlobs(join(folder.dir, 'blobs'));
    const code = Buffer.from(
      "export default { routes: [{ name: 'p', handler: () => ({ a: 1 }) }, { name: 'q' }] };",
    );
    const key = bundleKeyOf(code);
    expect(checkKey(key)).toBe(key);
    await blobs.put(key, code);
    const { handler } = (await loadHandlers(blobs, key, asItIs)).get('p')!;
    expect(handler?.({} as never, null)).toEqual({ a: 1 });
    await blobs.put(key, Buffer.from('export default { routes: [] };'));
    await expect(loadHandlers(blobs, key, asItIs)).rejects.toThrow(/changed/);
    await blobs.delete(key);
    await expect(loadHandlers(blobs, key, asItIs)).rejects.toThrow(/is missing/);
    await blobs.close();
  });

  test('tells where in the job file it throws, and is the same code with another comment', async () => {
    const lines = [
      "import { check } from './check-price.ts';",
      'interface Price { amount: number }',
      'export default {',
      "  sources: 'https://a.example/',",
      "  routes: [{ name: 'p', handler(page: { price: Price }) { return check(page.price); } }],",
      '};',
    ];
    await fileOf(
      'check-price.ts',
      'export function check(price: object): void {\n  throw new Error("no price");\n}',
    );
    const codeOf = async (text: string) => (await loadJobFile(await fileOf('throws.ts', text), asItIs)).code!;
    const plain = await codeOf(lines.join('\n'));
    const commented = await codeOf(['// Prices.', ...lines].join('\n'));
    expect(bundleKeyOf(commented)).toBe(bundleKeyOf(plain));
    const { handler } = handlersOf(await importCode(commented)).get('p')!;
    const thrown = (page: unknown) => {
      try {
        return handler?.(page as never, null);
      } catch (error) {
        return placesOfError(error);
      }
    };
    expect(thrown({ price: {} })).toEqual([
      expect.stringMatching(/check-price\.ts:2$/),
      expect.stringMatching(/throws\.ts:6$/),
      expect.stringMatching(/job-files\.test\.ts:\d+$/),
    ]);
    expect((thrown(null) as string[])[0]).toMatch(/throws\.ts:6$/);
    expect(placesOfError(new Error('elsewhere'))[0]).toMatch(/job-files\.test\.ts:\d+$/);
    expect(placesOfError('text')).toEqual([]);
    const { handler: stored } = handlersOf(await importCode(plain)).get('p')!;
    let thrownAt = '';
    try {
      stored?.({ price: {} } as never, null);
    } catch (error) {
      thrownAt = describeCodeError(error);
    }
    expect(thrownAt).toMatch(/^no price \(.*check-price\.ts:2, called from .*throws\.ts:5, /);
  });

  test('anything that has no handlers has none', () => {
    for (const definition of [
      null,
      undefined,
      5,
      'x',
      {},
      { routes: 5 },
      { routes: [null, 'x', { handler: 5, name: 'p' }, { handler() {} }] },
    ]) {
      expect(handlersOf(definition).size).toBe(0);
    }
  });
});
