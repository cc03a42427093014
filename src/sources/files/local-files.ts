import { createReadStream, type Dirent } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, SeineError } from '../../core/errors.ts';
import { compileGlob } from '../../core/url/pattern.ts';
import { MissingFileError, type RemoteFiles } from '../../ports/remote-files.ts';
import { BrokenFileError } from '../rows/raw-row.ts';
import { byBytes } from './by-bytes.ts';

/** Files of this machine, by path. */
export function openLocalFiles(): RemoteFiles {
  return {
    async *list(path) {
      if (!path.includes('*') || (await isThere(path))) {
        yield { url: path, bytes: await sizeOf(path) };
        return;
      }
      for (const file of (await expand(path)).sort(byBytes)) {
        const found = await stat(file).catch(() => null);
        if (found) yield { url: file, bytes: found.size };
      }
    },
    size: sizeOf,
    async read(path, offset, length) {
      const handle = await open(path).catch((error: unknown) => refuse(path, error));
      try {
        const bytes = Buffer.allocUnsafe(length);
        let filled = 0;
        while (filled < length) {
          const { bytesRead } = await handle.read(bytes, filled, length - filled, offset + filled);
          if (bytesRead === 0) throw new BrokenFileError('it became shorter while reading it');
          filled += bytesRead;
        }
        return bytes;
      } finally {
        await handle.close();
      }
    },
    async stream(path, offset = 0) {
      await sizeOf(path);
      return createReadStream(path, { start: offset, highWaterMark: 256 * 1024 });
    },
    async close() {},
  };
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch((error: unknown) => refuse(path, error));
  if (found.isDirectory())
    throw new SeineError(`${path} is a folder`, {
      hint: `to read all files in it, use '${join(path, '*')}'`,
    });
  if (!found.isFile()) throw new SeineError(`${path} is not a file`);
  return found.size;
}

function refuse(path: string, error: unknown): never {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR')
    throw new MissingFileError(`no such file: ${path}`, {
      hint: 'pass a URL (https://…), a file of URLs, or a job file',
      cause: error,
    });
  throw new SeineError(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Files that a path with `*` stands for: `*` stays within a folder, `**` does not; hidden names must be asked for. */
async function expand(pattern: string): Promise<string[]> {
  const root = pattern.slice(0, pattern.slice(0, pattern.indexOf('*')).lastIndexOf('/') + 1);
  const depth = pattern.includes('**')
    ? Number.POSITIVE_INFINITY
    : pattern.slice(root.length).split('/').length - 1;
  const fits = compileGlob(pattern);
  const hidden = `/${pattern.slice(root.length)}`.includes('/.');
  const found: string[] = [];
  const visit = async (folder: string, level: number): Promise<void> => {
    for (const entry of await entriesOf(folder)) {
      if (entry.name.startsWith('.') && !hidden) continue;
      const path = folder + entry.name;
      const kind = await kindOf(entry, path, depth);
      if (kind === 'file' && fits(path)) found.push(path);
      if (kind === 'folder' && level < depth) await visit(`${path}/`, level + 1);
    }
  };
  await visit(root, 0);
  return found;
}

function entriesOf(folder: string): Promise<Dirent[]> {
  return readdir(folder || '.', { withFileTypes: true }).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    return refuse(folder, error);
  });
}

/** Links are followed, but not into folders at any depth: they may lead back. */
async function kindOf(entry: Dirent, path: string, depth: number): Promise<'file' | 'folder' | 'other'> {
  const found = entry.isSymbolicLink() ? await stat(path).catch(() => null) : entry;
  if (found?.isFile()) return 'file';
  const mayEnter = found === entry || Number.isFinite(depth);
  return found?.isDirectory() && mayEnter ? 'folder' : 'other';
}
