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
/** Of the package, as npm writes it down for what it has unpacked. */
const INTEGRITY =
  'sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==';
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

/** Fetches the package once, with npm: its registry and proxy are those of the user. No other bytes than the known ones are kept. */
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
  if (integrityIn(dir) !== INTEGRITY) {
    await rm(dir, { recursive: true, force: true });
    throw new SeineError(`the npm registry has another ${NAME}@${VERSION} than the one that is known`, {
      hint: 'check the registry that npm uses: npm config get registry',
    });
  }
  const found = findChromiumPackage(home);
  if (!found) throw new SeineError(`npm has fetched ${NAME}, but it is not in ${dir}`);
  return found;
}

/** npm has compared it with the bytes that it fetched. */
function integrityIn(dir: string): string | null {
  try {
    const text = readFileSync(join(dir, 'node_modules', '.package-lock.json'), 'utf8');
    const { packages } = JSON.parse(text) as { packages?: Record<string, { integrity?: string }> };
    return packages?.[`node_modules/${NAME}`]?.integrity ?? null;
  } catch {
    return null;
  }
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}
