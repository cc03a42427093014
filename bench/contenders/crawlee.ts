import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH_FOLDER, type Contender, childScript, type Mode, readPlain } from './contender.ts';

const PACKAGE = join(BENCH_FOLDER, 'node_modules', '@crawlee', 'cheerio');

export function crawleeContender(mode: Mode, pagesMax: number): Contender {
  return {
    id: `crawlee-${mode}`,
    label: mode === 'links' ? 'Crawlee CheerioCrawler' : 'Crawlee CheerioCrawler, `h1` and `.price`',
    mode,
    keeps: mode === 'links' ? 'request queue on disk' : 'queue + dataset on disk',
    pagesMax,
    missing: () => (existsSync(PACKAGE) ? undefined : '@crawlee/cheerio is not installed in bench/'),
    command: ({ url, folder, pages }) => ({
      args: [childScript('crawlee-child.ts'), url, mode, String(pages)],
      env: { CRAWLEE_STORAGE_DIR: join(folder, 'crawlee') },
    }),
    read: readPlain,
  };
}
