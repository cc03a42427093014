import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { seine as seineHere } from '../../support/seine-in-process.ts';
import { seine, temporaryFolder } from '../../support/seine-process.ts';
import { endServer, serve } from '../../support/serve-process.ts';

/** The code of a job runs when its file or its stored bundle is loaded, in whatever command: it never sees a secret. */

const folder = temporaryFolder();
const at = (name: string) => join(folder.path, name);
const seen = at('seen.txt');
const TOKEN = 'of-the-operator';
const env = { OPERATORS_TOKEN: TOKEN, JOB_SITE: 'for-jobs' };

writeFileSync(
  at('nosy.ts'),
  `import { appendFileSync } from 'node:fs';
appendFileSync(${JSON.stringify(seen)}, JSON.stringify(process.env) + '\\n');
export default {
  sources: ['http://127.0.0.1:9/'],
  routes: [{ name: 'page', handler: () => ({}) }],
  retry: { attempts: 1 },
};
`,
);

beforeEach(() => rmSync(seen, { force: true }));
afterAll(() => folder.remove());

function checkSeen(): void {
  const text = readFileSync(seen, 'utf8');
  expect(text).toContain('for-jobs');
  expect(text).not.toContain(TOKEN);
}

test('of seine run and seine try', async () => {
  await seineHere(['run', at('nosy.ts'), '--dir', at('state')], { env });
  checkSeen();
  // A process of its own: the same module is not run twice in one.
  await seine(['try', 'nosy', 'http://127.0.0.1:9/', '--dir', at('state')], { env });
  checkSeen();
});

test('of seine serve', async () => {
  Object.assign(process.env, env);
  const server = await serve(at('served'), at('nosy.ts'));
  // Its address, and the end of the run.
  await server.until(2);
  await endServer(server);
  checkSeen();
});
