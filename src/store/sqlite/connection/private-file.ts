import { closeSync, existsSync, openSync } from 'node:fs';
import { PRIVATE_FILE } from '../../../core/file-modes.ts';

/**
 * Makes the file of a database before SQLite does, which would let everyone read it. The files beside it, `-wal` and
 * `-shm`, get the mode of the database. Returns the path.
 */
export function makePrivate(path: string): string {
  if (path !== ':memory:' && !existsSync(path)) closeSync(openSync(path, 'a', PRIVATE_FILE));
  return path;
}
