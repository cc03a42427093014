import { readdirSync, readFileSync } from 'node:fs';

const PAGE_BYTES = 4_096;

/** Memory of a process and of all that it started, as Lambda counts it; zero where the system does not say. */
export function treeMemoryBytes(root: number): number {
  let bytes = residentBytes(root, { isRoot: true });
  const left = childrenOf(root);
  for (let pid = left.pop(); pid !== undefined; pid = left.pop()) {
    bytes += residentBytes(pid, { isRoot: false });
    left.push(...childrenOf(pid));
  }
  return bytes;
}

/** What a browser's processes share is counted by none of them, rather than by each. */
function residentBytes(pid: number, { isRoot }: { isRoot: boolean }): number {
  try {
    const [, resident, shared] = readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ').map(Number);
    return (resident! - (isRoot ? 0 : shared!)) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

/** Each thread has its own. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}
