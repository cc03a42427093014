/**
 * Limits that a container or a service puts on this process: control groups of Linux, version 1, version 2 or both. A
 * group lies inside others, and each of them may have a limit: the smallest counts.
 */
export interface CgroupLimits {
  /** Time on cores, as a number of cores; null without a limit. */
  cores: number | null;
  memoryBytes: number | null;
  /** Used of `memoryBytes` by everything in that group, without cached files that were not read lately: those make room. */
  memoryUsedBytes: number | null;
}

/** The text of a file; null when it cannot be read. */
export type ReadText = (path: string) => string | null;

/** Where groups of one kind lie. `root`: the group that the mount point shows; files above it are not to be seen. */
interface Mount {
  version: 1 | 2;
  controllers: readonly string[];
  root: string;
  point: string;
}

/** Version 1 has no word for "none": the largest number in pages. Nothing has a hundred petabytes. */
const NO_LIMIT_BYTES = 1e17;

export function cgroupLimits(read: ReadText): CgroupLimits {
  const mounts = mountsOf(read('/proc/self/mountinfo') ?? '');
  const groups = (read('/proc/self/cgroup') ?? '').split('\n');
  const result: CgroupLimits = { cores: null, memoryBytes: null, memoryUsedBytes: null };
  for (const line of groups) {
    const [id, controllers, ...rest] = line.split(':');
    const path = rest.join(':');
    if (id === undefined || controllers === undefined || !path.startsWith('/')) continue;
    const version = id === '0' && controllers === '' ? 2 : 1;
    const names = version === 2 ? ['cpu', 'memory'] : controllers.split(',');
    for (const controller of names) {
      const mount = mounts.find(
        (each) => each.version === version && (version === 2 || each.controllers.includes(controller)),
      );
      if (!mount) continue;
      for (const folder of foldersOf(mount, path)) {
        if (controller === 'cpu') addCores(result, coresOf(read, folder, version));
        if (controller === 'memory') addMemory(result, memoryOf(read, folder, version));
      }
    }
  }
  return result;
}

/** Lines such as `35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory`. */
function mountsOf(text: string): Mount[] {
  return text.split('\n').flatMap((line): Mount[] => {
    const [before, after] = line.split(' - ');
    const [, , , root, point] = (before ?? '').split(' ');
    const [type, , options] = (after ?? '').split(' ');
    if (root === undefined || point === undefined) return [];
    if (type === 'cgroup2') return [{ version: 2, controllers: [], root, point }];
    return type === 'cgroup' ? [{ version: 1, controllers: (options ?? '').split(','), root, point }] : [];
  });
}

/** Folders of the group and of those that it lies in, as far as they are to be seen. */
function foldersOf({ root, point }: Mount, path: string): string[] {
  // In a container the path may be the machine's, and the mount point shows only what is below `root`.
  const isBelow = root === '/' || path === root || path.startsWith(`${root}/`);
  const own = isBelow ? path.slice(root === '/' ? 0 : root.length) : '';
  const parts = own.split('/').filter((part) => part !== '' && part !== '..');
  return Array.from(
    { length: parts.length + 1 },
    (_, index) =>
      `${point}${parts
        .slice(0, index)
        .map((part) => `/${part}`)
        .join('')}`,
  );
}

function coresOf(read: ReadText, folder: string, version: 1 | 2): number | null {
  const [quota, period] =
    version === 2
      ? (read(`${folder}/cpu.max`) ?? '').trim().split(' ').map(numberOf)
      : [read(`${folder}/cpu.cfs_quota_us`), read(`${folder}/cpu.cfs_period_us`)].map(numberOf);
  return quota && period && quota > 0 && period > 0 ? quota / period : null;
}

function memoryOf(read: ReadText, folder: string, version: 1 | 2): { limit: number; used: number } | null {
  const names =
    version === 2
      ? { limits: ['memory.max', 'memory.high'], used: 'memory.current', cached: 'inactive_file' }
      : {
          limits: ['memory.limit_in_bytes'],
          used: 'memory.usage_in_bytes',
          cached: 'total_inactive_file',
        };
  const limits = names.limits
    .map((name) => numberOf(read(`${folder}/${name}`)))
    .filter((limit) => limit !== null && limit > 0 && limit < NO_LIMIT_BYTES) as number[];
  if (limits.length === 0) return null;
  const used = numberOf(read(`${folder}/${names.used}`)) ?? 0;
  const stat = (read(`${folder}/memory.stat`) ?? '').split('\n').map((line) => line.split(' '));
  const cached = numberOf(stat.find(([name]) => name === names.cached)?.[1]) ?? 0;
  return { limit: Math.min(...limits), used: Math.max(0, used - cached) };
}

function addCores(result: CgroupLimits, cores: number | null): void {
  if (cores !== null && (result.cores === null || cores < result.cores)) result.cores = cores;
}

function addMemory(result: CgroupLimits, memory: { limit: number; used: number } | null): void {
  if (memory === null || (result.memoryBytes !== null && memory.limit >= result.memoryBytes)) return;
  result.memoryBytes = memory.limit;
  result.memoryUsedBytes = memory.used;
}

/** `max` and what is not there are no numbers. */
function numberOf(text: string | null | undefined): number | null {
  const words = text?.trim() ?? '';
  return /^-?\d+$/.test(words) ? Number(words) : null;
}
