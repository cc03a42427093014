import { readdirSync, readFileSync } from 'node:fs';
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

test('what the build loads from a package is installed with this one, or is bundled', () => {
  const { dependencies, peerDependencies } = JSON.parse(textOf('package.json')) as Record<
    'dependencies' | 'peerDependencies',
    Record<string, string>
  >;
  const bundled = [...textOf('scripts/bundle-packages.ts').matchAll(/^ {2}'([\w/-]+)',$/gm)].map(
    ([, path]) => `src/${path}.ts`,
  );
  expect(bundled).toContain('src/aws/s3/s3-sdk.ts');
  // The first is fetched by a command, the second is what a job file imports.
  const known = new Set([
    '@sparticuz/chromium',
    'seine',
    ...Object.keys({ ...dependencies, ...peerDependencies }),
  ]);
  const loads = /^(?:import|export|\}) (?!type )[^;]*?from '([^'.][^']*)'|[^f] import\('([^'.][^']*)'\)/gm;
  const missing = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .map((path) => `src/${path}`)
    .filter((path) => path.endsWith('.ts') && !bundled.includes(path))
    .flatMap((path) =>
      [...textOf(path).matchAll(loads)].map(([, fixed, later]) => ({ path, from: fixed ?? later ?? '' })),
    )
    .filter(({ from }) => !from.startsWith('node:'))
    .filter(({ from }) => !known.has(from.split('/', from.startsWith('@') ? 2 : 1).join('/')));
  expect(missing).toEqual([]);
});
