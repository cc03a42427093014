import { existsSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Contender, childScript, ROOT_FOLDER, readPlain } from './contender.ts';

const BINARY = join(ROOT_FOLDER, 'bin', 'seine.js');
/** For everybody. */
const PARALLEL = 64;

export interface MediaContender extends Omit<Contender, 'mode'> {
  /** Counts the files that the last run left, and empties them. */
  stored(): number;
}

interface MediaPlan {
  paths: string[];
  /** For what a run downloads. */
  newFolder(name: string): string;
}

function writeList({ paths }: MediaPlan, url: string, folder: string): string {
  const file = join(folder, 'pictures.txt');
  writeFileSync(file, `${paths.map((path) => url + path).join('\n')}\n`);
  return file;
}

/**
 * Emptied and not deleted before the end: ext4 takes up to a millisecond to create a file while many others have just
 * been deleted, and each run would be charged for the one before.
 */
function countFiles(folder: string, ending: string): number {
  const names = (readdirSync(folder, { recursive: true }) as string[]).filter((name) =>
    name.endsWith(ending),
  );
  for (const name of names) truncateSync(join(folder, name));
  return names.length;
}

export function loopContender(plan: MediaPlan): MediaContender {
  let output = '';
  return {
    id: 'loop',
    label: 'Bare loop: undici + md5 + writeFile, one process',
    keeps: 'files',
    missing: () => undefined,
    command({ url, folder }) {
      output = plan.newFolder('loop');
      const list = writeList(plan, url, folder);
      return { args: [childScript('media-loop-child.ts'), list, output, String(PARALLEL)] };
    },
    read: readPlain,
    stored: () => countFiles(output, '.jpg'),
  };
}

export function seineMediaContender(plan: MediaPlan, pack: 'none' | 'webdataset'): MediaContender {
  let output = '';
  return {
    id: `seine-${pack}`,
    label: pack === 'none' ? 'Seine, durable' : 'Seine, durable, `--pack webdataset`',
    keeps: pack === 'none' ? 'SQLite + files, the same bytes once' : 'SQLite + tar shards with JSON',
    missing: () => (existsSync(BINARY) ? undefined : 'bin/seine.js is not there'),
    command({ url, folder }) {
      output = plan.newFolder(`seine-${pack}`);
      return {
        args: [
          ...[BINARY, 'run', writeList(plan, url, folder), '--media', '--pack', pack, '--rate', 'max'],
          ...['--parallel', String(PARALLEL), '--workers', '2', '--allow-private'],
          ...['--dir', output, '--json', '--name', 'bench'],
        ],
      };
    },
    read(line) {
      const { done, seconds } = JSON.parse(line) as Record<string, unknown>;
      if (typeof done !== 'number' || typeof seconds !== 'number')
        throw new Error(`unexpected last line: ${line}`);
      return { pages: done, seconds };
    },
    stored: () => countFiles(output, pack === 'none' ? '.jpg' : '.tar'),
  };
}
