import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Finished, jsonLines, seine, startSeine, temporaryFolder } from '../seine-process.ts';
import { type AddressLog, openAddressLog } from '../servers/address-log.ts';
import { type ProxyServer, type ProxyServerOptions, startProxy } from '../servers/proxy-servers.ts';

/** Runs of jobs that go through proxies, against a site that notes who asks. */

export const closers: (() => void | Promise<void>)[] = [];

/** For `afterEach`. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

export async function openSite(): Promise<AddressLog> {
  const site = await openAddressLog({ delayMs: 5 });
  closers.push(() => site.close());
  return site;
}

export async function openProxy(options: ProxyServerOptions): Promise<ProxyServer> {
  const proxy = await startProxy(options);
  closers.push(() => proxy.close());
  return proxy;
}

function openFolder(): string {
  const folder = temporaryFolder();
  closers.push(() => folder.remove());
  return folder.path;
}

interface Plan {
  site: AddressLog;
  pages: number;
  list: string[];
  pool?: object;
  proxies?: object;
  job?: object;
  workers?: number;
}

/** The job in a folder of its own, with the list of its proxies beside it. */
export function writeJob(plan: Plan): { dir: string; args: string[] } {
  const { site, pages, list, pool, proxies, job, workers = 1 } = plan;
  const dir = openFolder();
  const urls = Array.from({ length: pages }, (_, index) => `${site.url}/page/${index}`);
  writeFileSync(join(dir, 'urls.txt'), urls.join('\n'));
  writeFileSync(join(dir, 'proxies.txt'), list.join('\n'));
  const definition = {
    name: 'proxied',
    sources: [{ file: 'urls.txt' }],
    allowPrivate: true,
    politeness: { rate: 'max', parallel: 8, adaptive: false },
    retry: { baseMs: 100 },
    proxies: { pools: { dc: { from: { file: 'proxies.txt' }, ...pool } }, default: 'dc', ...proxies },
    ...job,
  };
  writeFileSync(join(dir, 'job.json'), JSON.stringify(definition));
  return {
    dir,
    args: ['run', join(dir, 'job.json'), '--dir', join(dir, 'data'), '--workers', String(workers), '--json'],
  };
}

export async function run(plan: Plan): Promise<Finished & { dir: string }> {
  const { dir, args } = writeJob(plan);
  const started = startSeine(args);
  closers.push(async () => void (await started.killTree()));
  return { ...(await started.finished), dir };
}

export async function attemptsOf(dir: string): Promise<{ proxy: string; worker: string; fetcher: string }[]> {
  const { stdout } = await seine(['export', '--what', 'attempts', '--dir', join(dir, 'data')]);
  return jsonLines(stdout);
}
