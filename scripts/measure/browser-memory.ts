import { browser as browserSchema } from '../../src/core/job-schema/browser.ts';
import { openBrowserFetcher } from '../../src/fetch/browser/browser-fetcher.ts';
import { groupMemoryBytes } from '../../src/fetch/browser/process/process-memory.ts';
import type { FetchRequest } from '../../src/ports/fetcher.ts';
import { openRawOrigin, reply } from '../../test/support/servers/raw-origin.ts';
import { readOptions } from '../read-options.ts';

const { values } = readOptions({
  start: 'npx node scripts/measure/browser-memory.ts',
  about: `Shows many pages and looks at the memory of the browser and of this process: the sum must stay within ± 10 % of its
mean once both are warm. The first fifth of the pages is for that: caches fill, and heaps grow to the size they keep.`,
  options: {
    pages: { count: 1_000, does: 'pages to show' },
    browser: { text: 'bundled', does: 'which one, as the setting `browserPath` names it' },
    screenshots: { flag: true, does: 'take one of each page' },
  },
});
const total = values.pages;
const PARALLEL = 4;
/** Each part of the run has the median of its looks; the first is not judged. */
const PARTS = 5;
const FLAT_SHARE = 0.1;

const ITEMS = Array.from({ length: 200 }, (_, at) => ({ name: `item ${at}`, text: 'words '.repeat(20) }));
const origin = await openRawOrigin({
  '/page': (socket) => {
    const script = `document.body.innerHTML = ${JSON.stringify(ITEMS)}.map((item) => '<h2>' + item.name + '</h2><p>' + item.text).join('')`;
    socket.write(reply('200 OK', ['Content-Type: text/html'], `<body><script>${script}</script>`));
  },
});
const fetcher = await openBrowserFetcher({
  clock: { now: () => performance.timeOrigin + performance.now() },
  isPublicAddress: () => true,
  browser: { path: values.browser, pages: PARALLEL },
});
await fetcher.prepare();

let started = 0;
let done = 0;
let failed = 0;
const looks: { browser: number; own: number }[][] = Array.from({ length: PARTS }, () => []);

async function look(): Promise<void> {
  const sizes = await Promise.all(fetcher.pids().map((pid) => groupMemoryBytes(pid)));
  const browser = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  // While one browser takes over from another there are two for a moment.
  if (sizes.length !== 1) return;
  const part = Math.min(PARTS - 1, Math.floor((done / total) * PARTS));
  looks[part]!.push({ browser, own: process.memoryUsage().rss });
}

function inWords(): string {
  const last = looks.findLast((part) => part.length > 0) ?? [];
  return `browser ${medianMb(last, 'browser')} MB, this process ${medianMb(last, 'own')} MB`;
}

async function work(): Promise<void> {
  while (started < total) {
    const number = ++started;
    const request: FetchRequest = {
      url: `${origin.url}/page?${number}`,
      headers: {},
      timeouts: { connectMs: 10_000, headersMs: 20_000, bodyMs: 20_000, taskMs: 60_000 },
      bodyBytesMax: 1024 * 1024,
      parallel: PARALLEL,
      allowPrivate: true,
      signal: new AbortController().signal,
      onSent: () => true,
      render: browserSchema.parse({ screenshot: values.screenshots }),
    };
    const result = await fetcher.fetch(request);
    if (result.kind !== 'response') failed++;
    done++;
    if (done % Math.ceil(total / PARTS) === 0)
      process.stderr.write(`${done} of ${total} pages, ${inWords()}\n`);
  }
}

const timer = setInterval(() => void look(), 500);
const startedAt = performance.now();
await Promise.all(Array.from({ length: PARALLEL }, work));
clearInterval(timer);
const seconds = (performance.now() - startedAt) / 1_000;
await fetcher.close();
await origin.close();

type Whose = 'browser' | 'own' | 'sum';

function medianMb(part: { browser: number; own: number }[], of: Whose): number {
  const sizes = part.map(({ browser, own }) => ({ browser, own, sum: browser + own })[of]);
  sizes.sort((a, b) => a - b);
  return Math.round((sizes[sizes.length >> 1] ?? 0) / 1024 ** 2);
}
process.stdout.write(
  `${total} pages in ${seconds.toFixed(0)} s, ${(total / seconds).toFixed(1)} pages/s, ${failed} failed\n`,
);
for (const whose of ['browser', 'own', 'sum'] as const) {
  const medians = looks.map((part) => medianMb(part, whose));
  process.stdout.write(`${whose}: ${medians.join(' · ')} MB\n`);
}
const warm = looks.slice(1).map((part) => medianMb(part, 'sum'));
const mean = warm.reduce((sum, each) => sum + each, 0) / warm.length;
const farthest = Math.max(...warm.map((each) => Math.abs(each - mean) / mean));
process.stdout.write(
  `the sum of the warm parts is within ± ${(farthest * 100).toFixed(1)} % of ${Math.round(mean)} MB\n`,
);
if (failed > 0 || !(farthest <= FLAT_SHARE)) process.exitCode = 1;
