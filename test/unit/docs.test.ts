import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { jobFields } from '../../scripts/job-fields.ts';
import { SECTIONS, withSections } from '../../scripts/write-docs.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { SETTINGS } from '../../src/config/schema.ts';
import { EXIT_CODES } from '../../src/core/errors.ts';
import { FAILURES, SKIPS } from '../../src/core/failures.ts';
import { COUNTER_NAMES } from '../../src/core/model.ts';
import { jobJsonSchema } from '../../src/job/json-schema.ts';
import { parseJob } from '../../src/job/parse-job.ts';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.ts';
import { Page } from '../../src/worker/page.ts';

/** What the code has is documented, and what is documented the code has. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const isOurs = (path: string) => !/(^|\/)(node_modules|dist|results|\.[^/]+)(\/|$)/.test(path);

const DOCS = ['.', 'docs', 'examples']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: folder !== '.', encoding: 'utf8' }).map((name) =>
      relative(ROOT, join(ROOT, folder, name)),
    ),
  )
  .filter((path) => path.endsWith('.md') && isOurs(path))
  .sort();
/** Other crawlers' options live in the benchmarks. */
const ABOUT_SEINE = DOCS.filter((path) => path !== 'docs/benchmarks.md');

/** Rows of the tables of a text, as cells; `\|` is part of a cell. */
function rowsOf(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(2, -2)
        .split(/(?<!\\) \| /)
        .map((cell) => cell.replaceAll('\\|', '|')),
    );
}

/** First cells that are code, of the tables between two markers. */
function firstCells(path: string, section: string): string[] {
  const text = read(path).split(`<!-- ${section}:begin`)[1]!.split(`<!-- ${section}:end`)[0]!;
  return rowsOf(text)
    .map(([first]) => first!)
    .filter((cell) => cell.startsWith('`'))
    .map((cell) => cell.slice(1, -1));
}

describe('tables of the code', () => {
  test.each(Object.keys(SECTIONS))('%s repeats them exactly', (path) => {
    // `npx node scripts/write-docs.ts` puts it right.
    expect(read(path)).toBe(withSections(path, read(path)));
  });

  test('settings, with variable and default', () => {
    const rows = rowsOf(read('docs/configuration.md')).slice(1);
    expect(rows.map(([name, env, , shown]) => [name, env, shown])).toEqual(
      Object.entries(SETTINGS).map(([name, { env, shown }]) => [`\`${name}\``, `\`${env}\``, shown]),
    );
  });

  test('commands and options', () => {
    const text = read('docs/cli.md');
    const headings = [...text.matchAll(/^### seine (\S+)$/gm)].map(([, name]) => name);
    expect(headings).toEqual(Object.keys(COMMANDS));
    for (const [name, { options, examples, summary }] of Object.entries(COMMANDS)) {
      const section = text.split(`### seine ${name}\n`)[1]!.split('\n### ')[0]!;
      const documented = [...section.matchAll(/^\| `(?:-\w, )?--([\w-]+)/gm)].map(([, option]) => option);
      expect(documented, name).toEqual(Object.keys(options));
      for (const part of [summary, ...examples]) expect(section).toContain(part);
    }
  });

  test('failure, skip and exit codes', () => {
    expect(firstCells('docs/failure-codes.md', 'failures')).toEqual(Object.keys(FAILURES));
    expect(firstCells('docs/failure-codes.md', 'skips')).toEqual(Object.keys(SKIPS));
    expect(
      rowsOf(read('docs/exit-codes.md'))
        .slice(1)
        .map(([code, name]) => [Number(code), name]),
    ).toEqual(Object.entries(EXIT_CODES).map(([name, { code }]) => [code, name]));
  });

  test('fields of a job, each explained', () => {
    const fields = jobFields();
    expect(firstCells('docs/jobs.md', 'fields')).toEqual(
      expect.arrayContaining(fields.map(({ path }) => path)),
    );
    expect(firstCells('docs/jobs.md', 'fields')).toHaveLength(fields.length);
    expect(fields.filter(({ doc }) => doc === '')).toEqual([]);
    expect(fields.length).toBeGreaterThan(50);
  });

  test('schema/job.json is the schema of the code', () => {
    expect(JSON.parse(read('schema/job.json'))).toEqual(JSON.parse(JSON.stringify(jobJsonSchema())));
  });
});

describe('written by hand, but true', () => {
  test('counters, exported fields and tables of the database', () => {
    for (const name of COUNTER_NAMES) expect(read('docs/cli.md')).toContain(`\`${name}\``);
    const tables = [...MIGRATIONS.join('\n').matchAll(/CREATE TABLE (\w+)/g)].map(([, name]) => name!).sort();
    const section = read('docs/files.md').split('## The database')[1]!;
    const documented = rowsOf(section)
      .slice(1)
      .flatMap(([names]) => [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
    expect(documented.sort()).toEqual(tables);
    expect(membersOf('TaskRow', 'src/core/model.ts')).toEqual(exportedFields('tasks'));
    expect(membersOf('RecordRow', 'src/core/model.ts')).toEqual(exportedFields('records'));
    expect(membersOf('AttemptRow', 'src/core/model.ts')).toEqual(exportedFields('attempts'));
  });

  test('the Page of a handler', () => {
    const section = read('docs/jobs.md').split('| Page | is |')[1]!.split('\n\n')[0]!;
    const documented = [...section.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`(\w+)/g)].map(([, name]) => name!),
    );
    const page = new Page({
      url: '',
      status: 200,
      contentType: null,
      contentTypeHeader: null,
      headers: [],
      body: Buffer.from(''),
      route: null,
      meta: null,
    });
    const members = [
      ...Object.keys(page),
      ...Object.getOwnPropertyNames(Page.prototype).filter((name) => name !== 'constructor'),
    ];
    expect(documented.sort()).toEqual(members.sort());
  });

  test('the library: options, methods, handle and exports', () => {
    const text = read('docs/library.md');
    for (const type of ['SeineOptions', 'Seine', 'RunHandle'])
      for (const name of membersOf(type, 'src/library.ts'))
        expect(text, `${type}.${name}`).toMatch(new RegExp(`\\| \`${name}\\b`));
    const documented = rowsOf(text)
      .map(([first]) => /^`(\w+)/.exec(first!)?.[1])
      .filter((name) => name !== undefined);
    const members = ['SeineOptions', 'Seine', 'RunHandle'].flatMap((type) =>
      membersOf(type, 'src/library.ts'),
    );
    expect(documented.sort()).toEqual(members.sort());
    const exported = [...read('src/index.ts').matchAll(/\{([^}]*)\}/g)].flatMap(([, names]) =>
      names!.split(',').map((name) => name.replace(/\btype\b/, '').trim()),
    );
    for (const name of exported) expect(text).toMatch(new RegExp(`\\b${name}\\b`));
  });

  test('jobs shown as code are valid', () => {
    const blocks = ABOUT_SEINE.flatMap((path) =>
      [...read(path).matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => ({ path, text: text! })),
    );
    expect(blocks.length).toBeGreaterThan(0);
    for (const { path, text } of blocks) parseJob(parse(text), path, 'job');
    parseJob(parse(read('examples/shop.yaml')), 'examples/shop.yaml', 'job');
  });
});

describe('nothing is named that does not exist', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const everyOption = new Set([
    ...Object.values(COMMANDS).flatMap(({ options }) => Object.keys(options)),
    'version',
  ]);
  const all = ABOUT_SEINE.map((path) => ({ path, text: read(path) }));

  /** What a pattern finds in the docs, with its place. */
  function mentions(pattern: RegExp): { name: string; place: string }[] {
    return all.flatMap(({ path, text }) =>
      [...text.matchAll(pattern)].map((match) => ({ name: match[1]!, place: `${path}: ${match[0]}` })),
    );
  }

  function unknown(pattern: RegExp, isKnown: (name: string) => boolean): string[] {
    const found = mentions(pattern);
    expect(found.length, String(pattern)).toBeGreaterThan(0);
    return found.filter(({ name }) => !isKnown(name)).map(({ place }) => place);
  }

  test('npm scripts', () => {
    expect(unknown(/\bnpm run ([\w:-]+)/g, (name) => name in scripts)).toEqual([]);
    expect(read('README.md')).toMatch(/npm test\b/);
    expect(scripts).toHaveProperty('test');
  });

  test('commands', () => {
    expect(unknown(/(?:^ {4}|^|npx |`)seine ([a-z]+)\b/gm, (name) => name in COMMANDS)).toEqual([]);
  });

  test('options of a command', () => {
    const lines = all.flatMap(({ path, text }) =>
      [...text.matchAll(/(?:^ {4}|^|npx |`)seine ([a-z]+)\b([^`\n|#]*)/gm)].map(([line, name, rest]) => ({
        place: `${path}: ${line}`,
        name: name!,
        rest: rest!,
      })),
    );
    const wrong = lines.filter(({ name, rest }) =>
      [...rest.matchAll(/\s--([\w-]+)/g)].some(([, option]) => !(option! in (COMMANDS[name]?.options ?? {}))),
    );
    expect(wrong.map(({ place }) => place)).toEqual([]);
  });

  test('options in passing, and variables', () => {
    const others = new Set(['write', 'port']);
    expect(unknown(/`--([a-z][\w-]*)/g, (name) => everyOption.has(name) || others.has(name))).toEqual([]);
    const variables = new Set<string>(Object.values(SETTINGS).map(({ env }) => env));
    expect(unknown(/\b(SEINE_[A-Z_]+)\b/g, (name) => variables.has(name))).toEqual([]);
  });

  test('fields of a job in passing', () => {
    const fields = new Set(jobFields().map(({ path }) => path));
    expect(
      unknown(/`((?:limits|politeness|identity|timeouts|retry|breaker|url)\.\w+)`/g, (name) =>
        fields.has(name),
      ),
    ).toEqual([]);
  });

  test('files', () => {
    const isThere = (path: string) => existsSync(join(ROOT, path)) || existsSync(join(ROOT, 'src', path));
    expect(
      unknown(
        /`((?:src|test|scripts|docs|examples|bin|schema|bench|core|worker|coordinator)\/[\w./-]+\.\w+)`/g,
        isThere,
      ),
    ).toEqual([]);
    const withoutFolder =
      /`((?:plan|settle|robots|process|pace|seeds|app|folder|worker-app|library)[\w-]*\.ts)`/g;
    const names = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map(
      (path) => path.split('/').at(-1)!,
    );
    expect(unknown(withoutFolder, (name) => names.includes(name))).toEqual([]);
  });

  test('links', () => {
    const broken = DOCS.flatMap((path) =>
      [...read(path).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)]
        .map(([, target]) => target!)
        .filter((target) => !leadsSomewhere(path, target))
        .map((target) => `${path}: ${target}`),
    );
    expect(broken).toEqual([]);
    expect(DOCS.length).toBeGreaterThan(15);
  });

  test('every page of docs/ can be reached from the README', () => {
    const reached = new Set(['README.md']);
    for (const path of reached) {
      for (const [, target] of read(path).matchAll(/\]\((?!https?:)([^)\s#]+)[^)]*\)/g)) {
        const to = relative(ROOT, join(ROOT, dirname(path), target!));
        if (to.endsWith('.md') && existsSync(join(ROOT, to))) reached.add(to);
        else for (const inner of DOCS) if (dirname(inner) === to.replace(/\/$/, '')) reached.add(inner);
      }
    }
    expect(DOCS.filter((path) => !reached.has(path))).toEqual([]);
  });
});

function leadsSomewhere(from: string, target: string): boolean {
  const [path, anchor] = target.split('#') as [string, string | undefined];
  const file = path === '' ? join(ROOT, from) : join(ROOT, dirname(from), path);
  if (!existsSync(file)) return false;
  if (anchor === undefined) return true;
  const anchors = [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replace(/\s/g, '-'),
  );
  return anchors.includes(anchor);
}

/** Names of the members of an interface, from its source. */
function membersOf(name: string, path: string): string[] {
  const body = new RegExp(`export interface ${name} \\{([\\s\\S]*?)\\n\\}`).exec(read(path))?.[1];
  if (body === undefined) throw new Error(`${path} has no interface ${name}`);
  return [...body.matchAll(/^ {2}(\w+)\??[:(]/gm)].map(([, member]) => member!);
}

function exportedFields(what: string): string[] {
  const row = rowsOf(read('docs/cli.md')).find(([first]) => first === `\`${what}\``);
  if (!row) throw new Error(`docs/cli.md does not explain --what ${what}`);
  return [...row[2]!.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
}
