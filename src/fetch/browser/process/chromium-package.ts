import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf, SeineError } from '../../../core/errors.ts';
import { PRIVATE_FOLDER } from '../../../core/file-modes.ts';

/** A Chromium inside an npm package. 68 MB, which most installations do not need: so it is fetched when asked for. */
const NAME = '@sparticuz/chromium';
const VERSION = '153.0.0';
/** A slow line needs minutes for 68 MB. */
const INSTALL_MS = 900_000;

interface ChromiumPackage {
  /** The folder of its package.json. */
  dir: string;
  version: string;
}

/** Beside Seine where the project depends on it, otherwise where `seine browser install` put it; null if there is none. */
export function findChromiumPackage(home = homedir()): ChromiumPackage | null {
  const beside = besideSeine();
  const cached = join(cacheFolder(home), 'node_modules', NAME);
  const dir = beside ?? (existsSync(join(cached, 'package.json')) ? cached : null);
  if (dir === null) return null;
  const { version } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as { version: string };
  return { dir, version };
}

function besideSeine(): string | null {
  try {
    return join(dirname(createRequire(import.meta.url).resolve(NAME)), '..');
  } catch {
    return null;
  }
}

/** For this user, as the conventions of the system say. */
function cacheFolder(home: string): string {
  return join(home, '.cache', 'seine', `chromium-${VERSION}`);
}

/** Fetches the package once, with npm: its registry, proxy and checks of what was fetched are those of the user. */
export async function installChromiumPackage(home = homedir()): Promise<ChromiumPackage> {
  const dir = cacheFolder(home);
  await mkdir(dir, { recursive: true, mode: PRIVATE_FOLDER });
  const args = ['install', '--prefix', dir, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts'];
  try {
    await promisify(execFile)('npm', [...args, `${NAME}@${VERSION}`], { timeout: INSTALL_MS, cwd: dir });
  } catch (cause) {
    await rm(dir, { recursive: true, force: true });
    throw new SeineError(`cannot fetch ${NAME} from the npm registry: ${lastLine(messageOf(cause))}`, {
      cause,
    });
  }
  const found = findChromiumPackage(home);
  if (!found) throw new SeineError(`npm has fetched ${NAME}, but it is not in ${dir}`);
  return found;
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}
