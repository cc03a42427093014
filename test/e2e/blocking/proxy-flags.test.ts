import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';
import { openAddressLog } from '../../support/servers/address-log.ts';
import { closedPort, startProxy } from '../../support/servers/proxy-servers.ts';

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test('--proxies is a list for every request, and how they fare is shown without their secrets', async () => {
  const site = await openAddressLog();
  closers.push(() => site.close());
  const credentials = { username: 'ann', password: 'sesame' };
  const proxy = await startProxy({ from: '127.0.0.21', credentials });
  closers.push(() => proxy.close());
  const dead = await closedPort();
  const folder = temporaryFolder();
  closers.push(() => folder.remove());
  const dir = folder.path;
  writeFileSync(
    join(dir, 'list.txt'),
    `${proxy.url('ann:sesame')}\nhttp://eve:opensesame@127.0.0.1:${dead}\n`,
  );
  writeFileSync(join(dir, 'urls.txt'), Array.from({ length: 30 }, (_, n) => `${site.url}/p/${n}`).join('\n'));
  const data = ['--dir', join(dir, 'data')];
  const flags = ['--proxies', join(dir, 'list.txt'), '--rate', 'max', '--allow-private', '--json'];
  const result = await seine(['run', join(dir, 'urls.txt'), ...flags, ...data]);
  expect(lastJson(result)).toMatchObject({ state: 'done', done: 30 });
  expect(new Set(site.requests.map(({ address }) => address))).toEqual(new Set(['127.0.0.21']));
  const shown = await seine(['proxies', '--json', ...data]);
  const rows = jsonLines(shown.stdout);
  expect(rows.find((row) => String(row.proxy).startsWith(`127.0.0.1:${dead}#`))).toMatchObject({
    state: 'resting',
    failuresInRow: expect.any(Number),
  });
  expect(rows.find(({ state }) => state === 'usable')).toBeDefined();
  const text = await seine(['proxies', ...data]);
  expect(text.stdout).toMatch(/resting +until 20/);
  expect(shown.stdout + text.stdout + result.stdout + result.stderr).not.toContain('sesame');
});
