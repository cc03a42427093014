import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, cp, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf, SeineError } from '../../core/errors.ts';
import { VERSION } from '../../core/identity/identity.ts';
import { IMAGE_FOLDER, unpackChromiumPackage } from '../../fetch/browser/process/unpack-chromium.ts';
import { bundleWorker } from './bundle-worker.ts';

export interface LambdaImage {
  folder: string;
  bytes: number;
  /** Says what is in it: the same for the same. */
  tag: string;
}

/** Beside the bundle as it is: Playwright finds its parts by path. */
const PACKAGES = ['playwright-core'];
/** Native code, of the platform that it was installed on. */
const ABSENT = ['impit'];
/** Programs of their own that the worker starts. */
const ENTRIES = {
  index: 'entry/lambda',
  thread: 'entry/thread',
  'watchdog-main': 'fetch/browser/process/watchdog-main',
};

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DOCKERFILE = join(ROOT, 'deploy/lambda/Dockerfile');

/** Lays out the folder that the image of a function with Chromium is built in. */
export async function buildLambdaImage(folder: string): Promise<LambdaImage> {
  await prepare(folder);
  const files: Record<string, Uint8Array> = {
    ...(await bundleWorker({ entries: ENTRIES, absent: ABSENT, external: PACKAGES, what: 'image' })),
    Dockerfile: readFileSync(DOCKERFILE),
  };
  const packages = packagesOf(PACKAGES);
  const chromium = await unpackChromiumPackage();
  try {
    for (const [name, bytes] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), bytes);
    }
    for (const { name, from } of packages)
      await cp(from, join(folder, 'node_modules', name), { recursive: true, dereference: true });
    // Not packed: to unpack it takes an environment two seconds, at each cold start.
    await cp(chromium.folder, join(folder, IMAGE_FOLDER), { recursive: true });
    return { folder, bytes: await openToAll(folder), tag: tagOf(files, [...packages, chromium]) };
  } catch (error) {
    throw cannotWrite(error);
  }
}

/** Only a folder that is ours is emptied. */
async function prepare(folder: string): Promise<void> {
  try {
    const names = await readdir(folder).catch((): string[] => []);
    if (names.length > 0 && !(names.includes('Dockerfile') && names.includes('index.mjs')))
      throw new SeineError(`${folder} is not empty and not a build folder of Seine`, {
        hint: 'choose another folder with -o',
      });
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw error instanceof SeineError ? error : cannotWrite(error);
  }
}

function cannotWrite(error: unknown): SeineError {
  return new SeineError(`cannot write the build folder of the image: ${messageOf(error)}`, { cause: error });
}

interface Package {
  name: string;
  version: string;
  from: string;
}

/** These packages, and what they need. */
function packagesOf(names: readonly string[]): Package[] {
  const found = new Map<string, Package>();
  const add = (name: string, from: string) => {
    const dir = folderOf(name, from);
    if (found.get(name)?.from === dir) return;
    const { version, dependencies = {} } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
    if (found.has(name))
      throw new SeineError(`the image would need two versions of ${name}`, { exit: 'internal' });
    found.set(name, { name, version, from: dir });
    for (const needed of Object.keys(dependencies)) add(needed, dir);
  };
  for (const name of names) add(name, ROOT);
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** As Node looks for it. */
function folderOf(name: string, from: string): string {
  for (let dir = from; ; dir = dirname(dir)) {
    const path = join(dir, 'node_modules', name);
    if (existsSync(join(path, 'package.json'))) return path;
    if (dir === dirname(dir))
      throw new SeineError(`the package ${name} is not installed`, { hint: 'run `npm install`' });
  }
}

/** Lambda runs the image as a user whom nothing belongs to. Returns the bytes of all files. */
async function openToAll(path: string): Promise<number> {
  const found = await stat(path);
  const isFolder = found.isDirectory();
  await chmod(path, found.mode | (isFolder ? 0o755 : 0o644));
  if (!isFolder) return found.size;
  let bytes = 0;
  for (const name of await readdir(path)) bytes += await openToAll(join(path, name));
  return bytes;
}

function tagOf(
  files: Record<string, Uint8Array>,
  packages: readonly Pick<Package, 'name' | 'version'>[],
): string {
  const lines = [
    ...Object.keys(files)
      .sort()
      .map((name) => `${name} ${hash('sha256', files[name]!, 'hex')}`),
    ...packages.map(({ name, version }) => `${name} ${version}`),
  ];
  return `${VERSION}-${hash('sha256', lines.join('\n'), 'hex').slice(0, 12)}`;
}
