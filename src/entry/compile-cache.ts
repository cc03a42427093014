import { lstatSync, mkdirSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Keeps compiled modules for the next start. What is in their folder is run, so it is one of this user alone: the folder
 * that Node would take can be made, and filled, by any user of the machine.
 */
export function useCompileCache(): void {
  const user = process.getuid?.();
  // Only systems with users share a folder for temporary files.
  if (user === undefined) enableCompileCache();
  else {
    const folder = join(tmpdir(), `seine-compile-cache-${user}`);
    if (isPrivateFolder(folder, user)) enableCompileCache(folder);
  }
}

/** Makes it where there is none. A link may lead elsewhere by the time it is used, so it counts as no folder. */
export function isPrivateFolder(folder: string, user: number): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch {
    // It was there before, or there is no room.
  }
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === user && (found.mode & 0o077) === 0;
}
