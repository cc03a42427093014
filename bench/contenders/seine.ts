import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { nodeFlags } from '../node-flags.ts';
import { type Contender, type Mode, ROOT_FOLDER } from './contender.ts';

const BINARY = join(ROOT_FOLDER, 'bin', 'seine.js');

/** The one place that knows how Seine is started and what its last line holds. */
export function seineContender(mode: Mode): Contender {
  return {
    id: `seine-${mode}`,
    label: mode === 'links' ? 'Seine, durable' : 'Seine, durable, `h1` and `.price`',
    mode,
    keeps: 'SQLite + WARC',
    missing: () => (existsSync(BINARY) ? undefined : 'bin/seine.js is not there'),
    command: ({ url, folder }) => ({
      args: [
        ...[
          ...nodeFlags(),
          BINARY,
          'run',
          url,
          '--follow',
          '--rate',
          'max',
          '--parallel',
          '32',
          '--workers',
          '2',
        ],
        ...['--allow-private', '--dir', join(folder, 'seine'), '--json', '--name', 'bench'],
        ...(mode === 'select' ? ['--select', 'title=h1', '--select', 'price=.price'] : []),
      ],
    }),
    read(line) {
      const { done, seconds, records } = JSON.parse(line) as Record<string, unknown>;
      if (typeof done !== 'number' || typeof seconds !== 'number')
        throw new Error(`unexpected last line: ${line}`);
      if (mode === 'select' && records !== done)
        throw new Error(`${done} pages but ${String(records)} records`);
      return { pages: done, seconds };
    },
  };
}
