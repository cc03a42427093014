import { spawnSync } from 'node:child_process';
import { chownSync } from 'node:fs';
import { temporaryFolder } from './seine-process.ts';

const NOBODY = 65_534;

/** Root may read and write anything, and has no sandbox: what ordinary users meet is tested as one. */
export function ordinaryUser(): number {
  const own = process.getuid!();
  if (own !== 0) return own;
  const program = `require('node:fs').readFileSync(${JSON.stringify(import.meta.filename)})`;
  const { status } = spawnSync(process.execPath, ['-e', program], { uid: NOBODY, gid: NOBODY, cwd: '/' });
  if (status !== 0)
    throw new Error(
      'the user nobody cannot read this clone: move it to where every user may read, or run the tests as another user than root',
    );
  return NOBODY;
}

/** A folder that belongs to this user. */
export function folderOf(user: number): ReturnType<typeof temporaryFolder> {
  const folder = temporaryFolder();
  chownSync(folder.path, user, process.getuid!() === user ? process.getgid!() : user);
  return folder;
}
