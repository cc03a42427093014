import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SeineError } from '../../../core/errors.ts';
import { PRIVATE_FILE } from '../../../core/file-modes.ts';
import { makePrivate } from './private-file.ts';

/** Garbage collection would close a database without a reference, and drop its lock. */
const held = new Set<DatabaseSync>();

export interface FolderLock {
  release(): void;
}

/**
 * One coordinator per folder. The lock is SQLite's own file lock, which the system drops when
 * the process dies, however it dies: no stale lock files, no guessing about process ids.
 */
export function lockFolder(dir: string): FolderLock {
  const db = new DatabaseSync(makePrivate(join(dir, 'lock.db')));
  try {
    // A look by `isFolderLocked` holds the lock for a moment: that is no coordinator.
    db.exec('PRAGMA busy_timeout = 500; BEGIN EXCLUSIVE');
    held.add(db);
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw error;
    throw lockedError(dir);
  }
  const owner = join(dir, 'owner.json');
  writeFileSync(owner, JSON.stringify({ pid: process.pid, since: new Date().toISOString() }), {
    mode: PRIVATE_FILE,
  });
  return {
    release() {
      rmSync(owner, { force: true });
      held.delete(db);
      db.exec('ROLLBACK');
      db.close();
    },
  };
}

function lockedError(dir: string): SeineError {
  // A server writes down where it is reached: see server/server-file.ts.
  if (existsSync(join(dir, 'server.json')))
    return new SeineError(`a server is running in ${dir}${ownerOf(dir)}`, {
      exit: 'locked',
      hint: 'other commands use it: for example `seine run` submits a job to it; end the server with Ctrl-C or SIGTERM, or use another --dir',
    });
  return new SeineError(`another coordinator is running in ${dir}${ownerOf(dir)}`, {
    exit: 'locked',
    hint: 'wait until it ends, stop it with `seine stop`, or use another --dir',
  });
}

/** Whether a coordinator is alive in the folder. */
export function isFolderLocked(dir: string): boolean {
  const path = join(dir, 'lock.db');
  if (!existsSync(path)) return false;
  let db: DatabaseSync | null = null;
  try {
    db = new DatabaseSync(makePrivate(path));
    db.exec('PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; ROLLBACK');
    return false;
  } catch (error) {
    return isBusy(error);
  } finally {
    db?.close();
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && /locked|busy/i.test(error.message);
}

function ownerOf(dir: string): string {
  try {
    const { pid, since } = JSON.parse(readFileSync(join(dir, 'owner.json'), 'utf8'));
    return ` (process ${pid}, since ${since})`;
  } catch {
    return '';
  }
}
