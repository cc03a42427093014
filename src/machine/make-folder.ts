import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * A folder and those it is in, as far as they are missing. One step at a time: Node's own recursion never ends where the
 * system says that a folder is missing though its parent is there, as below /proc.
 */
export function makeFolder(
  dir: string,
  /** `mode` is that of the folder and of those it is in up to `top`, itself when absent. What is above is left to the umask. */
  { mode, top = dir }: { mode?: number; top?: string } = {},
): void {
  if (isFolder(dir)) return;
  const parent = dirname(dir);
  if (parent !== dir) makeFolder(parent, mode === undefined || dir === top ? {} : { mode, top });
  try {
    mkdirSync(dir, mode === undefined ? {} : { mode });
  } catch (error) {
    // Another thread or process was quicker.
    if (!isFolder(dir)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
