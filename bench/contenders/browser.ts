import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeFlags } from '../node-flags.ts';
import { BENCH_FOLDER, type Contender, childScript, ROOT_FOLDER, readPlain } from './contender.ts';

const BINARY = join(ROOT_FOLDER, 'bin', 'seine.js');
const PACKAGE = join(BENCH_FOLDER, 'node_modules', '@crawlee', 'playwright');
/** Pages open at once, for everybody. */
export const PARALLEL = 4;

interface Pictures {
  count: number;
  bytesMin: number;
  bytesMean: number;
}

export interface BrowserContender extends Omit<Contender, 'mode'> {
  takesPictures: boolean;
  /** Counts the pictures that the last run left, and their bytes. */
  pictures(): Pictures;
}

interface BrowserPlan {
  paths: string[];
  /** The Chromium that everybody uses, and what it needs in its environment. */
  chromium: { path: string; environment: Record<string, string> };
  newFolder(name: string): string;
}

function writeList({ paths }: BrowserPlan, url: string, folder: string): string {
  const file = join(folder, 'pages.txt');
  writeFileSync(file, `${paths.map((path) => url.replace(/\/$/, '') + path).join('\n')}\n`);
  return file;
}

/** How pages are kept: with a PNG each, or the HTML of the DOM alone. */
type Keeping = 'fast' | 'small' | 'html';

/** As the other does it: a page is there when it has loaded. */
function writeJob(list: string, folder: string, keeping: Keeping): string {
  const file = join(folder, 'job.json');
  const pictures = keeping === 'html' ? {} : { screenshot: { packing: keeping } };
  const job = {
    name: 'bench',
    sources: { file: list },
    routes: [{ name: 'page', browser: { waitUntil: 'load', ...pictures } }],
    politeness: { rate: 'max', parallel: PARALLEL },
    allowPrivate: true,
  };
  writeFileSync(file, JSON.stringify(job));
  return file;
}

function countPictures(folder: string, sizeOf: (file: string) => number): Pictures {
  const files = readdirSync(folder, { recursive: true }) as string[];
  const sizes = files.filter((name) => name.endsWith('.png')).map((name) => sizeOf(join(folder, name)));
  const sum = sizes.reduce((bytes, size) => bytes + size, 0);
  return { count: sizes.length, bytesMin: Math.min(...sizes), bytesMean: sum / sizes.length };
}

export function crawleeBrowserContender(
  plan: BrowserPlan,
  sizeOf: (file: string) => number,
  takesPictures: boolean,
): BrowserContender {
  let output = '';
  return {
    id: takesPictures ? 'crawlee-browser' : 'crawlee-html',
    label: `Crawlee PlaywrightCrawler${takesPictures ? '' : ', no pictures'}`,
    keeps: `queue on disk, ${takesPictures ? 'PNG and ' : ''}HTML files`,
    takesPictures,
    missing: () => (existsSync(PACKAGE) ? undefined : '@crawlee/playwright is not installed in bench/'),
    command({ url, folder }) {
      output = plan.newFolder('crawlee');
      return {
        args: [
          ...[childScript('browser-child.ts'), writeList(plan, url, folder), output, String(PARALLEL)],
          ...(takesPictures ? [] : ['html']),
        ],
        env: {
          ...plan.chromium.environment,
          BENCH_CHROMIUM: plan.chromium.path,
          CRAWLEE_STORAGE_DIR: join(folder, 'crawlee'),
        },
      };
    },
    read: readPlain,
    pictures: () => countPictures(output, sizeOf),
  };
}

export function seineBrowserContender(
  plan: BrowserPlan,
  sizeOf: (file: string) => number,
  keeping: Keeping,
): BrowserContender {
  let output = '';
  const takesPictures = keeping !== 'html';
  return {
    id: `seine-${keeping}`,
    label: `Seine, durable${{ fast: '', small: ", PNGs packed as Crawlee's", html: ', no pictures' }[keeping]}`,
    keeps: takesPictures
      ? 'SQLite, WARC with HTML and pictures, PNG files, contact sheet'
      : 'SQLite, WARC with HTML',
    takesPictures,
    missing: () => (existsSync(BINARY) ? undefined : 'bin/seine.js is not there'),
    command({ url, folder }) {
      output = plan.newFolder('seine');
      return {
        args: [
          ...[...nodeFlags(), BINARY, 'run', writeJob(writeList(plan, url, folder), folder, keeping)],
          ...['--workers', '1', '--dir', output, '--json'],
        ],
        env: { SEINE_BROWSER: plan.chromium.path },
      };
    },
    read(line) {
      const { done, seconds } = JSON.parse(line) as Record<string, unknown>;
      if (typeof done !== 'number' || typeof seconds !== 'number')
        throw new Error(`unexpected last line: ${line}`);
      return { pages: done, seconds };
    },
    pictures: () => countPictures(output, sizeOf),
  };
}
