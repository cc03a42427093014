import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { SETTINGS } from '../../config/schema.ts';
import { SeineError } from '../../core/errors.ts';
import type { Machine } from '../../core/machine/machine-shares.ts';
import { machine, wholeMachine } from '../../machine/machine.ts';
import { formatBytes } from '../../tui/format.ts';
import type { Context } from '../context.ts';
import type { Finding } from './check.ts';

/** As in package.json. */
const NODE_MIN = [22, 19] as const;
/** Below this a job stops by itself. */
const FREE_BYTES_MIN = 256 * 1024 * 1024;

export function checkNode(version = process.version): Finding {
  const [major = 0, minor = 0] = version.slice(1).split('.').map(Number);
  if (major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1]))
    throw new SeineError(`${version} is too old`, { hint: `install Node ${NODE_MIN.join('.')} or newer` });
  return { detail: version };
}

/** What this process may use of the machine, and what it makes of that. */
export function checkMachine(own: Machine = machine(), whole: Machine = wholeMachine()): Finding {
  const words = ({ cores, memoryBytes }: Machine) =>
    `${cores} ${cores === 1 ? 'core' : 'cores'}, ${formatBytes(memoryBytes)} memory`;
  const isLimited = own.cores < whole.cores || own.memoryBytes < whole.memoryBytes;
  const limit = isLimited ? ` (limited by its cgroup; the machine has ${words(whole)})` : '';
  return { detail: `${words(own)}${limit}` };
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
