import { stat, statfs } from 'node:fs/promises';

/** Of one tab: the tiles of the largest usual page, 16,000 by 1,920 dots. */
const TAB_BYTES = 128 * 1024 ** 2;
/** Chromium may run as another user, and does not start where it cannot make its files. */
const FOR_EVERYONE = 0o007;

/**
 * Whether what the processes of a browser share can be in memory: most containers have 64 MB for that, and a browser
 * that needs more of it crashes. Files on a disk always have room, but a page with a picture then takes a tenth more CPU.
 */
export async function fitsSharedMemory(tabs: number, folder = '/dev/shm'): Promise<boolean> {
  try {
    const [{ mode }, { bavail, bsize }] = await Promise.all([stat(folder), statfs(folder)]);
    return (mode & FOR_EVERYONE) === FOR_EVERYONE && bavail * bsize >= tabs * TAB_BYTES;
  } catch {
    return false;
  }
}
