import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { installChromiumPackage } from '../../../../src/fetch/browser/process/chromium-package.ts';
import { temporaryFolder } from '../../../support/seine-process.ts';

/** What `seine browser install` keeps of what a registry hands out. */

const folder = temporaryFolder();
afterEach(() => {
  vi.unstubAllEnvs();
  folder.remove();
});

const ROOT = join(import.meta.dirname, '../../../..');
const KNOWN = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages[
  'node_modules/@sparticuz/chromium'
];

/** In the place of npm: "unpacks" a package with this sum, and writes it down as npm does. */
function fakeNpm(integrity: string): void {
  const lock = { packages: { 'node_modules/@sparticuz/chromium': { ...KNOWN, integrity } } };
  writeFileSync(
    join(folder.path, 'npm'),
    `#!/bin/sh
mkdir -p "$3/node_modules/@sparticuz/chromium"
echo '{"version":"${KNOWN.version}"}' > "$3/node_modules/@sparticuz/chromium/package.json"
echo '${JSON.stringify(lock)}' > "$3/node_modules/.package-lock.json"
`,
    { mode: 0o755 },
  );
  vi.stubEnv('PATH', `${folder.path}:${process.env.PATH}`);
}

test('the package that is known, and nothing of another one', async () => {
  const home = join(folder.path, 'home');
  const cached = join(home, `.cache/seine/chromium-${KNOWN.version}`);
  fakeNpm('sha512-AAAA');
  await expect(installChromiumPackage(home)).rejects.toThrow(/another @sparticuz\/chromium@\S+ than the one/);
  expect(existsSync(cached)).toBe(false);
  fakeNpm(KNOWN.integrity);
  expect((await installChromiumPackage(home)).version).toBe(KNOWN.version);
  expect(existsSync(cached)).toBe(true);
});
