import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, freemem, totalmem } from 'node:os';
import { type CgroupLimits, cgroupLimits, type ReadText } from '../core/machine/cgroup-limits.ts';
import { type Machine, shareOf } from '../core/machine/machine-shares.ts';

/** The only place that asks what there is: everything that takes a share of it asks here. */

const readText: ReadText = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
};

/** Limits may be changed while the process runs, but threads and caches are made once. */
let known: Machine | null = null;

/** Cores and memory of the machine, or of the container or service where those are less. */
export function machine(): Machine {
  known ??= machineWithin(cgroupLimits(readText), {
    cores: availableParallelism(),
    memoryBytes: totalmem(),
  });
  return known;
}

export function machineWithin({ cores, memoryBytes }: CgroupLimits, whole: Machine): Machine {
  return {
    cores: Math.max(1, Math.floor(Math.min(whole.cores, cores ?? whole.cores))),
    memoryBytes: Math.min(whole.memoryBytes, memoryBytes ?? whole.memoryBytes),
  };
}

/** The machine without limits. */
export function wholeMachine(): Machine {
  return { cores: cpus().length, memoryBytes: totalmem() };
}

/** What is free now. */
export function freeMemoryBytes(): number {
  const { memoryBytes, memoryUsedBytes } = cgroupLimits(readText);
  if (memoryBytes === null) return process.availableMemory();
  return Math.max(0, Math.min(freemem(), memoryBytes - (memoryUsedBytes ?? 0)));
}

/** A share of the memory for one cache or buffer, in bytes, between two bounds. */
export function memoryShare(share: number, bounds: { min: number; max: number }): number {
  return shareOf(machine().memoryBytes, share, bounds);
}
