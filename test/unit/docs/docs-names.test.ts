import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { jobFields } from '../../../scripts/docs/job-fields.ts';
import { COMMANDS } from '../../../src/cli/specs/commands.ts';
import { SETTINGS } from '../../../src/config/schema.ts';
import { ABOUT_SEINE, DOCS, leadsSomewhere, ROOT, read } from '../../support/docs/docs-text.ts';

describe('nothing is named that does not exist', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const everyOption = new Set([
    ...Object.values(COMMANDS).flatMap(({ options }) => Object.keys(options)),
    'version',
  ]);
  const all = ABOUT_SEINE.map((path) => ({ path, text: aboutSeine(path) }));

  /** Without the words of others, which come first in a table of translations, and without mistakes on purpose. */
  function aboutSeine(path: string): string {
    const text = read(path).replace(/^```sh fails\n[\s\S]*?^```$/gm, '');
    return path.startsWith('docs/coming-from-') ? text.replace(/^\|.*?(?<!\\)\|/gm, '|') : text;
  }

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
    expect(unknown(/(?:^ {4}|^|npx |`)seine ([a-z]+(?:-[a-z]+)*)\b/gm, (name) => name in COMMANDS)).toEqual(
      [],
    );
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
    const variables = new Set<string>(
      Object.values(SETTINGS).flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env])),
    );
    // For tests only: test/support/seed.ts.
    variables.add('SEINE_TEST_SEED');

    const isVariable = (name: string) => variables.has(name) || name.startsWith('SEINE_SECRET_');
    expect(unknown(/\b(SEINE_[A-Z0-9_]+)\b/g, isVariable)).toEqual([]);
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

describe('ARCHITECTURE.md', () => {
  const text = read('ARCHITECTURE.md');
  const filesOf = (path: string) => globSync([join(ROOT, 'src', path), join(ROOT, path)]);

  test('names files and folders that are there', () => {
    const rooms = readdirSync(join(ROOT, 'src')).filter((name) => !name.includes('.'));
    const paths = [...text.matchAll(/`((?:[\w-]+\/)+[\w.*/-]*)`/g)].map(([, path]) => path!);
    const ours = paths.filter((path) => rooms.includes(path.split('/')[0]!));
    expect(ours.filter((path) => filesOf(path).length === 0)).toEqual([]);
    expect(ours.length).toBeGreaterThan(150);
  });

  test('names functions that are in those files', () => {
    const named = [...text.matchAll(/`(\w+)` in `([\w.*/-]+\.ts)`/g)];
    const wrong = named.filter(
      ([, name, path]) =>
        !filesOf(path!).some((file) => new RegExp(`\\b${name}\\b`).test(readFileSync(file, 'utf8'))),
    );
    expect(wrong.map(([whole]) => whole)).toEqual([]);
    expect(named.length).toBeGreaterThan(10);
  });

  test('has every folder and file of src in the table of layers', () => {
    const [, layers = ''] = /## Layers\n([\s\S]*?)\n## /.exec(text) ?? [];
    const named = new Set([...layers.matchAll(/`([\w.-]+)\/?`/g)].map(([, name]) => name!));
    // What the package exports, and nothing else.
    named.add('index.ts');
    expect(readdirSync(join(ROOT, 'src')).filter((name) => !named.has(name))).toEqual([]);
  });

  test('has each word of the glossary once, with the file that owns it', () => {
    const [, glossary = ''] = /## Glossary\n([\s\S]*?)\n## /.exec(text) ?? [];
    const rows = [...glossary.matchAll(/^\| ([A-Z][\w -]*) \| .+ \| (.+) \|$/gm)];
    const words = rows.map(([, word]) => word!);
    expect(words.filter((word, at) => words.indexOf(word) !== at)).toEqual([]);
    expect(rows.filter(([, , file]) => !/^`[^`]+\.ts`/.test(file!)).map(([whole]) => whole)).toEqual([]);
    expect(rows.length).toBe(glossary.match(/^\| [A-Z]/gm)?.length);
  });
});

describe('pages for people', () => {
  test.each(['to be had', 'who asks', 'is counted by', 'be let in', 'nobody', 'along', 'whoever', 'anew'])(
    'do not say "%s"',
    (phrase) => {
      const said = new RegExp(`\\b${phrase}\\b`, 'i');
      expect(
        DOCS.filter((path) => path !== 'CHANGELOG.md' && said.test(read(path).replace(/\s+/g, ' '))),
      ).toEqual([]);
    },
  );
});
