import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import * as index from '../../../src/index.ts';

const ROOT = join(import.meta.dirname, '../../..');
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('an older Node gets one sentence, from the command and from the library', async () => {
  const { checkNode } = (await import(pathToFileURL(join(ROOT, 'bin/check-node.js')).href)) as {
    checkNode(version: string): string | null;
  };
  for (const old of ['18.20.1', '20.20.2', '22.18.0']) {
    expect(checkNode(old)).toMatch(new RegExp(`^seine needs Node 22\\.19 or newer, this is ${old};[^\\n]*$`));
  }
  for (const supported of ['22.19.0', '24.0.0', '26.1.0']) expect(checkNode(supported)).toBeNull();
  const { engines } = JSON.parse(textOf('package.json')) as { engines: { node: string } };
  expect(engines.node).toBe('>=22.19');
  for (const entry of ['bin/seine.js', 'bin/library.js']) expect(textOf(entry)).toContain('checkNode()');
});

test('the library exports what its types say', () => {
  const [, names] = /export const \{([^}]*)\}/.exec(textOf('bin/library.js'))!;
  const listed = names!.split(',').map((name) => name.trim());
  expect(listed.sort()).toEqual(Object.keys(index).sort());
});

test('a consumer does not get the Chromium of Lambda, which the command fetches in the tested version', () => {
  const { dependencies, devDependencies } = JSON.parse(textOf('package.json')) as Record<
    'dependencies' | 'devDependencies',
    Record<string, string>
  >;
  expect(dependencies).not.toHaveProperty('@sparticuz/chromium');
  const source = textOf('src/fetch/browser/process/chromium-package.ts');
  expect(source).toContain(`VERSION = '${devDependencies['@sparticuz/chromium']}'`);
});
