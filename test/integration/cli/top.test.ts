import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { connect } from '../../../src/client/client.ts';
import { seineHere } from '../../support/seine-in-process.ts';
import { temporaryFolder } from '../../support/seine-process.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';
import { type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

const EXPLAINED = /\d+ % (waits|has|is)/;

let site: LinkedSite;
let server: ApiServer;
const folder = temporaryFolder();
const dir = join(folder.path, 'served');

beforeAll(async () => {
  [site, server] = await Promise.all([startLinkedSite({ pages: 4 }), openApiServer({ dir })]);
});

afterAll(async () => {
  await server.close();
  await site.close();
  folder.remove();
});

test('shows a job from its server and from its folder, and changes nothing', async () => {
  const client = connect({ url: server.url, key: server.token });
  const urls = [1, 2, 3].map((index) => new URL(pathOf(index), site.url).href);
  const { batch_id: id } = await client.batch([...urls, new URL('/gone', site.url).href]);
  await client.finished(id);
  await vi.waitFor(async () => expect((await client.explain(id)).limiting).not.toBeNull(), {
    timeout: 60_000,
  });
  const keyFile = join(folder.path, 'key');
  writeFileSync(keyFile, `${server.token}\n`);

  const expected = { accepted: 4, done: 3, dead: 1, pending: 0, leased: 0 };
  const served = await seineHere('top', id, '--server', server.url, '--key-file', keyFile, '--json');
  expect(JSON.parse(served.stdout)).toMatchObject({ counters: expected, fraction: 1, etaMs: 0 });
  const { name } = (await client.job(id)) as { name?: string };
  // Figures of hosts are written down every few seconds, and at the end.
  await vi.waitFor(
    async () => {
      const view = JSON.parse((await seineHere('top', name!, '--dir', dir, '--json')).stdout);
      expect(view).toMatchObject({ counters: expected, failures: [{ code: 'not-found' }] });
      expect(view.hosts).toMatchObject([{ host: new URL(site.url).host, done: 3 }]);
      expect(view.explanation).toMatch(EXPLAINED);
    },
    { timeout: 60_000, interval: 500 },
  );

  const shown = await seineHere('top', name!, '--dir', dir);
  expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining('3 done · 0 left · 1 dead')]);
  const explained = await seineHere('explain', name!, '--dir', dir, '--json', '--what-if', 'workers=+8');
  expect(Object.keys(JSON.parse(explained.stdout))).toEqual([
    'shares',
    'limiting',
    'criticalHost',
    'gains',
    'eta',
    'sentence',
    'wanted',
    'decisions',
  ]);
  const status = await seineHere('status', name!, '--dir', dir);
  expect(status.stdout).toMatch(EXPLAINED);
});

test('says what is wrong with a server', async () => {
  const refused = await seineHere('top', 'job_999', '--server', server.url);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('the server refuses')]);
  expect((await seineHere('top', '--server', 'x')).stderr).toContain("--server needs a URL, got 'x'");
});
