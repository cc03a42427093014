/** What a run cost, read from /proc: peak memory of a process tree, CPU seconds, and what others used meanwhile. */
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;
const SAMPLE_MS = 150;
const SAMPLES_PER_SHARE = 5;

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

/** A page that several processes share counts in part for each; undefined where that may not be read. */
function shareBytesOf(pid: number): number | undefined {
  const match = /^Pss:\s+(\d+) kB/m.exec(readText(`/proc/${pid}/smaps_rollup`) ?? '');
  return match === null ? undefined : Number(match[1]) * 1024;
}

export interface Followed {
  /** The highest sum of resident memory seen: what processes share counts several times. */
  peakBytes: number;
  /** The highest sum of proportional shares seen: what processes share counts once. */
  peakShareBytes: number;
  /** Of every process seen, also of those that nobody waited for; less what came after its last sample. */
  cpuSeconds: number;
}

/** Follows a process tree until stopped. */
export function followTree(pid: number): { stop(): Followed } {
  let peakBytes = 0;
  let peakShareBytes = Number.NaN;
  let samples = 0;
  const seconds = new Map<number, number>();
  const sample = (): void => {
    const tree = treeOf(pid);
    let sum = 0;
    for (const [each, { rssBytes, ownSeconds }] of tree) {
      sum += rssBytes;
      seconds.set(each, ownSeconds);
    }
    // The kernel's own high-water mark catches what falls between two samples.
    peakBytes = Math.max(peakBytes, sum, peakOfRoot(pid));
    // The kernel walks all pages for it, which takes milliseconds of a process that is being measured.
    if (samples++ % SAMPLES_PER_SHARE !== 0) return;
    let shares = 0;
    for (const each of tree.keys()) shares += shareBytesOf(each) ?? 0;
    if (shares > 0) peakShareBytes = Math.max(Number.isNaN(peakShareBytes) ? 0 : peakShareBytes, shares);
  };
  const supported = readStat('self') !== undefined;
  const timer = supported ? setInterval(sample, SAMPLE_MS) : undefined;
  return {
    stop() {
      clearInterval(timer);
      const cpuSeconds = [...seconds.values()].reduce((sum, each) => sum + each, 0);
      return { peakBytes: supported ? peakBytes : Number.NaN, peakShareBytes, cpuSeconds };
    },
  };
}
