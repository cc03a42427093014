import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { cgroupLimits } from '../../../src/core/machine/cgroup-limits.ts';
import { threadHeapMb, threadsFor } from '../../../src/core/machine/machine-shares.ts';
import { freeMemoryBytes, machine, machineWithin, wholeMachine } from '../../../src/machine/machine.ts';

const MB = 1024 * 1024;
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** The limits that files below a folder of their own tell of. */
function limitsOf(files: Record<string, string>) {
  const root = mkdtempSync(join(tmpdir(), 'seine-cgroup-'));
  folders.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
  }
  return cgroupLimits((path) => {
    try {
      return readFileSync(join(root, path), 'utf8');
    } catch {
      return null;
    }
  });
}

const NONE = { cores: null, memoryBytes: null, memoryUsedBytes: null };
const V2_MOUNT = '30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate';
const V1_MOUNTS = [
  '31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
  '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct',
  '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
].join('\n');
const V1_GROUPS = '4:memory:/docker/ab\n2:cpu,cpuacct:/docker/ab\n1:name=systemd:/docker/ab';
/** What version 1 says where there is no limit. */
const V1_NONE = { limit: '9223372036854771712', quota: '-1', period: '100000' };

describe('limits of cgroups', () => {
  test('version 2, in a container that sees its own group as the root', () => {
    const limits = limitsOf({
      '/proc/self/cgroup': '0::/',
      '/proc/self/mountinfo': V2_MOUNT,
      '/sys/fs/cgroup/cpu.max': '150000 100000',
      '/sys/fs/cgroup/memory.max': '536870912',
      '/sys/fs/cgroup/memory.current': '200000000',
      '/sys/fs/cgroup/memory.stat': 'anon 5\ninactive_file 50000000\nactive_file 7',
    });
    expect(limits).toEqual({ cores: 1.5, memoryBytes: 512 * MB, memoryUsedBytes: 150_000_000 });
  });

  test('version 2, in a service: the smallest limit of all groups it lies in', () => {
    const limits = limitsOf({
      '/proc/self/cgroup': '0::/system.slice/seine.service',
      '/proc/self/mountinfo': V2_MOUNT,
      '/sys/fs/cgroup/system.slice/cpu.max': '200000 100000',
      '/sys/fs/cgroup/system.slice/memory.max': `${900 * MB}`,
      '/sys/fs/cgroup/system.slice/memory.current': `${300 * MB}`,
      '/sys/fs/cgroup/system.slice/seine.service/cpu.max': 'max 100000',
      '/sys/fs/cgroup/system.slice/seine.service/memory.max': 'max',
      '/sys/fs/cgroup/system.slice/seine.service/memory.high': `${1_000 * MB}`,
    });
    expect(limits).toEqual({ cores: 2, memoryBytes: 900 * MB, memoryUsedBytes: 300 * MB });
  });

  test('version 1, with the path of the machine and only the own group mounted', () => {
    const limits = limitsOf({
      '/proc/self/cgroup': V1_GROUPS,
      '/proc/self/mountinfo': V1_MOUNTS.replaceAll(' / /sys/fs/cgroup/', ' /docker/ab /sys/fs/cgroup/'),
      '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '50000',
      '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000',
      '/sys/fs/cgroup/memory/memory.limit_in_bytes': `${256 * MB}`,
      '/sys/fs/cgroup/memory/memory.usage_in_bytes': `${100 * MB}`,
      '/sys/fs/cgroup/memory/memory.stat': `inactive_file 1\ntotal_inactive_file ${40 * MB}`,
    });
    expect(limits).toEqual({ cores: 0.5, memoryBytes: 256 * MB, memoryUsedBytes: 60 * MB });
  });

  test('version 1, below a group without a limit, beside an empty version 2', () => {
    const limits = limitsOf({
      '/proc/self/cgroup': `${V1_GROUPS}\n0::/`,
      '/proc/self/mountinfo': `${V1_MOUNTS}\n${V2_MOUNT.replace('/sys/fs/cgroup', '/sys/fs/cgroup/unified')}`,
      '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': V1_NONE.quota,
      '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': V1_NONE.period,
      '/sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.cfs_quota_us': '300000',
      '/sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.cfs_period_us': '100000',
      '/sys/fs/cgroup/memory/memory.limit_in_bytes': V1_NONE.limit,
      '/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes': `${700 * MB}`,
    });
    expect(limits).toEqual({ cores: 3, memoryBytes: 700 * MB, memoryUsedBytes: 0 });
  });

  test.each<[string, Record<string, string>]>([
    ['no cgroups', {}],
    ['no mounts', { '/proc/self/cgroup': '0::/a' }],
    ['files that are not there', { '/proc/self/cgroup': '0::/', '/proc/self/mountinfo': V2_MOUNT }],
    [
      'words that are no limits',
      {
        '/proc/self/cgroup': 'nonsense\n0::/../../up\n\n:::',
        '/proc/self/mountinfo': `- - -\n${V2_MOUNT}\nshort line`,
        '/sys/fs/cgroup/cpu.max': '0 0',
        '/sys/fs/cgroup/memory.max': '-5',
      },
    ],
    [
      'version 1 without limits',
      {
        '/proc/self/cgroup': V1_GROUPS,
        '/proc/self/mountinfo': V1_MOUNTS,
        '/sys/fs/cgroup/memory/memory.limit_in_bytes': V1_NONE.limit,
        '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': V1_NONE.quota,
        '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': V1_NONE.period,
      },
    ],
  ])('none: %s', (_, files) => {
    expect(limitsOf(files)).toEqual(NONE);
  });
});

describe('shares of the machine', () => {
  const whole = { cores: 16, memoryBytes: 64 * 1024 * MB };

  test.each([
    ['no limit', NONE, 8, 1_024],
    ['half a core', { ...NONE, cores: 0.5 }, 1, 1_024],
    ['two and a half cores', { ...NONE, cores: 2.5 }, 2, 1_024],
    ['512 MB', { ...NONE, memoryBytes: 512 * MB }, 3, 256],
    ['128 MB', { ...NONE, memoryBytes: 128 * MB }, 1, 128],
    ['more than there is', { ...NONE, cores: 99, memoryBytes: 1e15 }, 8, 1_024],
  ])('%s: threads and their heap', (_, limits, threads, heapMb) => {
    const own = machineWithin(limits, whole);
    expect(threadsFor(own)).toBe(threads);
    expect(threadHeapMb(own)).toBe(heapMb);
  });

  test('this machine has at least a core and some memory, and no more than the whole', () => {
    expect(machine().cores).toBeGreaterThanOrEqual(1);
    expect(machine().memoryBytes).toBeLessThanOrEqual(wholeMachine().memoryBytes);
    expect(freeMemoryBytes()).toBeGreaterThan(0);
    expect(freeMemoryBytes()).toBeLessThanOrEqual(wholeMachine().memoryBytes);
  });
});
