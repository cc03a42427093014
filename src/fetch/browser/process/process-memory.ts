import { readdir, readFile } from 'node:fs/promises';

const PAGE_BYTES = 4_096;

/** Memory of all processes of a group; null where there is no /proc. */
export async function groupMemoryBytes(group: number): Promise<number | null> {
  let names: string[];
  try {
    names = await readdir('/proc');
  } catch {
    return null;
  }
  const pids = names.filter((name) => /^\d+$/.test(name));
  const sizes = await Promise.all(pids.map((pid) => memoryOf(pid, group)));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function memoryOf(pid: string, group: number): Promise<number> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    // The name in brackets may hold anything; the group is the third field after it, resident pages the 22nd.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(fields[2]) !== group) return 0;
    return (await shareOf(pid)) ?? Number(fields[21]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

/** What processes have in common, and a browser's have much, is divided among them; null where that may not be read. */
async function shareOf(pid: string): Promise<number | null> {
  try {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1');
    const kilobytes = /^Pss:\s+(\d+) kB/m.exec(text)?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  } catch {
    return null;
  }
}
