/** How long commands take until they are of use. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ROOT_FOLDER } from '../contenders/contender.ts';
import { endedChildrenCpuSeconds, readStat } from '../meter.ts';
import { nodeFlags } from '../node-flags.ts';
import type { Scratch } from '../scratch.ts';

/** What one start took. */
export interface Start {
  ms: number;
  cpuMs: number;
}

const SEINE = join(ROOT_FOLDER, 'bin', 'seine.js');

/** From the start of a process to its exit. */
async function timeProcess(scratch: Scratch, args: string[], cwd: string): Promise<Start> {
  const cpuBefore = endedChildrenCpuSeconds();
  const startedAt = performance.now();
  const child = scratch.spawn(process.execPath, args, { cwd, stdio: 'ignore' });
  const [code] = await once(child, 'close');
  const ms = performance.now() - startedAt;
  if (code !== 0) throw new Error(`node ${args.join(' ')} ended with ${code}`);
  return { ms, cpuMs: (endedChildrenCpuSeconds() - cpuBefore) * 1_000 };
}

export const timeNode = (scratch: Scratch, cwd: string): Promise<Start> =>
  timeProcess(scratch, ['-e', '0'], cwd);

export const timeStatus = (scratch: Scratch, cwd: string): Promise<Start> =>
  timeProcess(scratch, [...nodeFlags(), SEINE, 'status'], cwd);

type Told = <T>(look: () => T) => Promise<{ at: number; seen: T }>;

/** A site that tells when it is asked for something, and what is to be looked at in that moment. */
export interface FirstRequest {
  url: string;
  /** The next request. */
  next: Told;
  /** The next time that a page of it is shown in a browser. */
  shown: Told;
  close(): void;
}

const SHOWN = '/shown';
const PAGE = `<!doctype html><title>a page</title><p>words</p>
<script>addEventListener('load', () => fetch('${SHOWN}'))</script>`;

export async function openFirstRequest(): Promise<FirstRequest> {
  const waiting: Record<'next' | 'shown', (() => void) | null> = { next: null, shown: null };
  const tell = (what: 'next' | 'shown') => {
    waiting[what]?.();
    waiting[what] = null;
  };
  const wait =
    (what: 'next' | 'shown'): Told =>
    (look) =>
      new Promise((resolve) => {
        waiting[what] = () => resolve({ at: performance.now(), seen: look() });
      });
  const server: Server = createServer(({ url }, reply) => {
    tell('next');
    if (url === SHOWN) tell('shown');
    reply.setHeader('content-type', 'text/html');
    reply.end(PAGE);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    next: wait('next'),
    shown: wait('shown'),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** `seine run URL` in an empty folder, from the start of its process to the first request that the site sees. */
export async function timeRun(scratch: Scratch, site: FirstRequest): Promise<Start> {
  const cwd = scratch.diskFolder('start');
  const startedAt = performance.now();
  const args = [...nodeFlags(), SEINE, 'run', site.url, '--allow-private'];
  const child = scratch.spawn(process.execPath, args, { cwd, stdio: 'ignore' });
  const exited = once(child, 'close');
  const first = site.next(() => readStat(child.pid!)?.ownSeconds ?? Number.NaN);
  const found = await Promise.race([first, exited.then(() => null)]);
  if (found === null) throw new Error('seine run ended without a request');
  await exited;
  scratch.remove(cwd);
  return { ms: found.at - startedAt, cpuMs: found.seen * 1_000 };
}

/** A folder with a job that is done, for commands that show it. */
export async function prepareFolder(scratch: Scratch, site: FirstRequest): Promise<string> {
  const cwd = scratch.diskFolder('status');
  await timeProcess(scratch, [...nodeFlags(), SEINE, 'run', site.url, '--allow-private'], cwd);
  return cwd;
}
