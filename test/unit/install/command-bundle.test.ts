import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../../src/cli/specs/commands.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** All commands, and those with a bundle of their own. */
describe.each(['dist/command', 'dist/command/report', 'dist/command/run'])('the bundle %s', (place) => {
  const folder = join(ROOT, place);
  const parts = readdirSync(folder)
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));

  test('its modules keep the addresses that the compiler gave them', () => {
    const addresses = parts.flatMap((text) =>
      [...text.matchAll(/__addressOf\("([^"]+)"\)/g)].map(([, path]) => path!),
    );
    expect(addresses).not.toEqual([]);
    expect(addresses.filter((path) => !existsSync(join(folder, path)))).toEqual([]);
  });

  test('what it imports from outside is there', () => {
    const paths = parts.flatMap((text) =>
      [...text.matchAll(/(?:from |import\()"(\.[^"]+)"/g)].map(([, path]) => path!),
    );
    expect(paths.some((path) => path.endsWith('aws/s3/s3-sdk.js'))).toBe(true);
    expect(paths.filter((path) => !existsSync(join(folder, path)))).toEqual([]);
  });
});

test('the bundle of runs finds the program of threads', () => {
  const folder = join(ROOT, 'dist/command/run');
  const texts = readdirSync(folder)
    .filter((name) => name.endsWith('.mjs'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));
  expect(texts.join('\n')).toContain('__addressOf("../../app/thread-entries.js")');
});

/** What a bundle of its own has to load may be no more than was once looked at: a schema or a parser comes in unseen. */
test('settings and reports load neither the schema of jobs nor an HTTP client', () => {
  const folder = join(ROOT, 'dist/command/report');
  const seen = new Set<string>();
  const load = (name: string): string => {
    if (seen.has(name)) return '';
    seen.add(name);
    const text = readFileSync(join(folder, name), 'utf8');
    const imported = [...text.matchAll(/^import .*?"\.\/(part-[^"]+)";$|^\} from "\.\/(part-[^"]+)";$/gm)];
    return text + imported.map(([, one, other]) => load((one ?? other)!)).join('');
  };
  const loaded = load('main.mjs');
  expect(loaded).toContain('// dist/cli/commands/jobs/reports.js');
  expect(loaded).not.toMatch(/^\/\/ node_modules\/(zod|undici)\//m);
});

test('bin/seine.js names commands that there are', () => {
  const text = readFileSync(join(ROOT, 'bin/seine.js'), 'utf8');
  const [, body = ''] = /const BUNDLES = \{(.*?)\};/s.exec(text) ?? [];
  const names = [...body.matchAll(/'([\w-]+)'/g)].map(([, name]) => name!);
  expect(names).toContain('status');
  expect(names.filter((name) => !(name in COMMANDS))).toEqual([]);
});
