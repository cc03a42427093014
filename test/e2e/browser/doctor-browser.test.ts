import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { lastJson, seine, temporaryFolder } from '../../support/seine-process.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

async function askDoctor(name: string, env: Record<string, string>) {
  const finished = await seine(['doctor', '--browser', '--json', '--dir', join(folder.path, name)], { env });
  const checks = lastJson(finished).checks as { name: string }[];
  return { code: finished.code, browser: checks.find((check) => check.name === 'browser') };
}

test('the doctor has Chromium show a page when asked, and says so when there is none', async () => {
  expect(await askDoctor('well', {})).toMatchObject({
    code: 0,
    browser: { ok: true, detail: expect.stringMatching(/renders pages/) },
  });
  expect(await askDoctor('ill', { SEINE_BROWSER: '/nowhere/chromium' })).toMatchObject({
    code: 2,
    browser: { ok: false, hint: expect.stringMatching(/SEINE_BROWSER/) },
  });
});
