/** Part of a core for some processes, as a function of Lambda has it: a group of the kernel with a quota. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface CpuShare {
  /** With all that it starts from now on. */
  add(pid: number): void;
  close(): Promise<void>;
}

/** Memory in MB that has one whole core in Lambda. */
export const MB_PER_CORE = 1_769;

/** Short, so that what takes 100 ms does not run through at full speed before the quota is noticed. */
const PERIOD_US = 20_000;
const CLOSE_TRIES = 50;
let opened = 0;

/** Null where groups cannot be made: they need root, and a Linux with the controller of CPU. */
export function openCpuShare(cores: number): CpuShare | null {
  const name = `seine-bench-${process.pid}-${++opened}`;
  const quota = Math.round(cores * PERIOD_US);
  const [first, second] = ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup'];
  try {
    // The first version of groups has a tree for each controller.
    const isFirst = existsSync(join(first, 'cpu.cfs_quota_us'));
    const group = join(isFirst ? first : second, name);
    if (!isFirst && !readFileSync(join(second, 'cgroup.subtree_control'), 'utf8').split(/\s/).includes('cpu'))
      writeFileSync(join(second, 'cgroup.subtree_control'), '+cpu');
    mkdirSync(group);
    if (isFirst) {
      writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_US));
      writeFileSync(join(group, 'cpu.cfs_quota_us'), String(quota));
    } else writeFileSync(join(group, 'cpu.max'), `${quota} ${PERIOD_US}`);
    return {
      add: (pid) => writeFileSync(join(group, 'cgroup.procs'), String(pid)),
      close: () => removeGroup(group),
    };
  } catch {
    return null;
  }
}

/** The kernel keeps it until its last process is gone. */
async function removeGroup(group: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      rmdirSync(group);
      return;
    } catch (error) {
      if (tries === CLOSE_TRIES) throw error;
      await sleep(100);
    }
  }
}
