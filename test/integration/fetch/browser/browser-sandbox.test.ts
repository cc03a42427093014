import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import { findChromium } from '../../../../src/fetch/browser/process/find-chromium.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';
import { temporaryFolder } from '../../../support/fixtures.ts';

/** A real Chromium that finds no user namespaces, as in most containers. */
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let path: string;
beforeAll(async () => {
  folder = await temporaryFolder();
  path = join(folder.dir, 'chromium');
  const real = await findChromium('bundled');
  const refuses = 'echo "No usable sandbox! If you are running on Ubuntu 23.10+" >&2; exit 1';
  await writeFile(
    path,
    `#!/bin/sh\ncase "$*" in *--no-sandbox*) exec '${real.path}' "$@";; esac\n${refuses}\n`,
    { mode: 0o755 },
  );
});
afterAll(() => folder.remove());
afterEach(() => vi.restoreAllMocks());

async function start(sandbox: 'auto' | 'try'): Promise<string[]> {
  const warnings: string[] = [];
  const logger = { info() {}, warn: (text: string) => void warnings.push(text), error() {} };
  // Root has no sandbox in the first place.
  vi.spyOn(process, 'getuid').mockReturnValue(1000);
  const fetcher = await openBrowserFetcher({ clock, isPublicAddress, logger, browser: { path, sandbox } });
  try {
    await fetcher.prepare();
    return warnings;
  } finally {
    await fetcher.close();
  }
}

test('where there are no user namespaces, the browser does without its sandbox only if it may', async () => {
  await expect(start('auto')).rejects.toThrow('Chromium has no usable sandbox here');
  expect(await start('try')).toContain(
    'the browser runs without its sandbox: there are no user namespaces here',
  );
});
