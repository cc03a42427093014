import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { SETTINGS } from '../../config/schema.ts';
import { SeineError } from '../../core/errors.ts';
import { formatBytes } from '../../tui/format.ts';
import type { Context } from '../context.ts';
import type { Finding } from './check.ts';

const NODE_MIN = 24;
/** Below this a job stops by itself. */
const FREE_BYTES_MIN = 256 * 1024 * 1024;

export function checkNode(): Finding {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < NODE_MIN)
    throw new SeineError(`${process.version} is too old`, { hint: `install Node ${NODE_MIN} or newer` });
  return { detail: process.version };
}

export function checkMachine(): Finding {
  return { detail: `${availableParallelism()} cores, ${formatBytes(totalmem())} memory` };
}

export async function checkDisk({ settings: { dir } }: Context): Promise<Finding> {
  const { bavail, bsize } = await statfs(existsSync(dir) ? dir : '.');
  const free = bavail * bsize;
  if (free <= FREE_BYTES_MIN)
    throw new SeineError(`only ${formatBytes(free)} free`, {
      hint: 'free some space, or choose another --dir',
    });
  return { detail: `${formatBytes(free)} free` };
}

export function checkIdentity({ loaded }: Context): Finding {
  const { contact } = loaded.config;
  return contact
    ? { detail: `contact ${contact}` }
    : { detail: `no contact set; set ${SETTINGS.contact.env} so that site owners can reach you` };
}
