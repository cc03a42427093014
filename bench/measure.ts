/** Runs one contender once and says what it did and cost. */
import { availableParallelism } from 'node:os';
import type { Contender } from './contenders/contender.ts';
import {
  endedChildrenCpuSeconds,
  type Followed,
  followTree,
  machineBusySeconds,
  readStat,
  treeCpuSeconds,
} from './meter.ts';
import type { Origin } from './origin-nginx.ts';
import type { Scratch } from './scratch.ts';

export interface Sample {
  pages: number;
  /** From the start of the crawl to its end, by the contender's own clock. */
  seconds: number;
  /** From the start of the process to its exit. */
  wallSeconds: number;
  /** As the origin counted them. */
  requests: number;
  peakBytes: number;
  /** As `peakBytes`, but what processes share counts once. */
  peakShareBytes: number;
  cpuSeconds: number;
  /** Without the start of its processes, and with the servers that it used, where the contender says it. */
  runCpuSeconds?: number;
  originCpuSeconds: number;
  /** Share of the machine that went to neither contender nor origin: above a few percent the figure is unsafe. */
  othersShare: number;
}

/** What it takes to be run and measured. */
type Runnable = Pick<Contender, 'id' | 'command' | 'read'> & { pagesMax?: number };

const TIMEOUT_MS = 600_000;

function runChild(
  scratch: Scratch,
  contender: Runnable,
  plan: { url: string; folder: string; pages: number },
): Promise<{ line: string; followed: Followed; wallSeconds: number }> {
  const { args, env } = contender.command(plan);
  const startedAt = performance.now();
  const child = scratch.spawn(process.execPath, args, {
    cwd: plan.folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const following = followTree(child.pid ?? 0);
  let out = '';
  let trouble = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    // Only the last line is wanted; a chatty contender must not fill our memory.
    out = (out + chunk.toString()).slice(-65_536);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    trouble = (trouble + chunk.toString()).slice(-4_096);
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      const followed = following.stop();
      const wallSeconds = (performance.now() - startedAt) / 1000;
      const line = out.trimEnd().split('\n').pop() ?? '';
      if (code === 0 && line !== '') resolve({ line, followed, wallSeconds });
      else reject(new Error(`${contender.id} ended with ${code}: ${trouble.trim().slice(-600)}`));
    });
  });
}

export async function measureOnce(
  scratch: Scratch,
  origin: Origin,
  contender: Runnable,
  pagesWanted: number,
  url = origin.url,
): Promise<Sample> {
  const folder = scratch.diskFolder(contender.id);
  const before = {
    requests: await origin.requestsSeen(),
    origin: treeCpuSeconds(origin.pid),
    children: endedChildrenCpuSeconds(),
    own: readStat('self')?.ownSeconds ?? Number.NaN,
    machine: machineBusySeconds(),
  };
  const pages = Math.min(pagesWanted, contender.pagesMax ?? pagesWanted);
  const run = await runChild(scratch, contender, { url, folder, pages });
  const machine = machineBusySeconds() - before.machine;
  const own = (readStat('self')?.ownSeconds ?? Number.NaN) - before.own;
  // A browser's processes are ended together, and what nobody waited for is in no parent's account.
  const cpuSeconds = Math.max(endedChildrenCpuSeconds() - before.children, run.followed.cpuSeconds);
  const originCpuSeconds = treeCpuSeconds(origin.pid) - before.origin;
  const requests = (await origin.requestsSeen()) - before.requests;
  scratch.remove(folder);
  const others = machine - own - cpuSeconds - originCpuSeconds;
  return {
    ...contender.read(run.line),
    wallSeconds: run.wallSeconds,
    requests,
    peakBytes: run.followed.peakBytes,
    peakShareBytes: run.followed.peakShareBytes,
    cpuSeconds,
    originCpuSeconds,
    othersShare: Math.max(0, others / (run.wallSeconds * availableParallelism())),
  };
}

export interface Check {
  /** Different pages that the origin gave with status 200. */
  distinct: number;
  /** Requests for a page that had been given before. */
  repeated: number;
  refused: number;
}

/** A round that is not timed: the origin writes down each request, so that nobody is credited with pages unread. */
export async function checkOnce(
  scratch: Scratch,
  origin: Origin,
  contender: Contender,
  pages: number,
): Promise<Check> {
  await origin.takeLog();
  await measureOnce(scratch, origin, contender, pages, origin.loggedUrl);
  const seen = new Set<string>();
  let repeated = 0;
  let refused = 0;
  for (const line of await origin.takeLog()) {
    const [status, path = ''] = line.split(' ');
    if (path === '/robots.txt') continue;
    if (status !== '200') refused += 1;
    else if (seen.has(path)) repeated += 1;
    else seen.add(path);
  }
  return { distinct: seen.size, repeated, refused };
}
