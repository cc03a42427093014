/** What a run cost, read from /proc: peak memory of a process tree, CPU seconds, and what others used meanwhile. */
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;
const SAMPLE_MS = 150;

interface ProcessStat {
  parent: number;
  /** utime + stime. */
  ownSeconds: number;
  /** cutime + cstime: children that ended and were waited for, exact once they are gone. */
  endedChildrenSeconds: number;
  rssBytes: number;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

export function readStat(pid: number | 'self'): ProcessStat | undefined {
  const text = readText(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The name in brackets may hold spaces; the fields after it do not.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    parent: Number(fields[1]),
    ownSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
    endedChildrenSeconds: (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND,
    rssBytes: Number(fields[21]) * PAGE_BYTES,
  };
}

function treeOf(root: number): Map<number, ProcessStat> {
  const all = new Map<number, ProcessStat>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const stat = readStat(pid);
    if (stat !== undefined) all.set(pid, stat);
  }
  const tree = new Map<number, ProcessStat>();
  for (const [pid, stat] of all) {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = all.get(at)?.parent) {
      if (at !== root) continue;
      tree.set(pid, stat);
      break;
    }
  }
  return tree;
}

/** CPU seconds of a running process and its running descendants. */
export function treeCpuSeconds(root: number): number {
  if (readStat('self') === undefined) return Number.NaN;
  let seconds = 0;
  for (const stat of treeOf(root).values()) seconds += stat.ownSeconds + stat.endedChildrenSeconds;
  return seconds;
}

/** CPU seconds of all children of this process that have ended. */
export function endedChildrenCpuSeconds(): number {
  return readStat('self')?.endedChildrenSeconds ?? Number.NaN;
}

/** Busy CPU seconds of the whole machine since it started. */
export function machineBusySeconds(): number {
  let busyMs = 0;
  for (const { times } of cpus()) busyMs += times.user + times.nice + times.sys + times.irq;
  return busyMs / 1000;
}

function peakOfRoot(pid: number): number {
  const match = /VmHWM:\s+(\d+) kB/.exec(readText(`/proc/${pid}/status`) ?? '');
  return match === null ? 0 : Number(match[1]) * 1024;
}

/** Follows a process tree until stopped; returns the highest sum of resident memory seen. */
export function watchMemory(pid: number): { stop(): number } {
  let peakBytes = 0;
  const sample = (): void => {
    let sum = 0;
    for (const stat of treeOf(pid).values()) sum += stat.rssBytes;
    // The kernel's own high-water mark catches what falls between two samples.
    peakBytes = Math.max(peakBytes, sum, peakOfRoot(pid));
  };
  const supported = readStat('self') !== undefined;
  const timer = supported ? setInterval(sample, SAMPLE_MS) : undefined;
  return {
    stop() {
      clearInterval(timer);
      return supported ? peakBytes : Number.NaN;
    },
  };
}
