import { type BrowserFetcher, openBrowserFetcher } from '../../src/fetch/browser/browser-fetcher.ts';
import type { FetchRequest, FetchResult } from '../../src/ports/fetcher.ts';
import { groupOf, listProcesses, renderersOf } from '../../test/support/browser/browser-processes.ts';
import { openRawOrigin, reply, sends } from '../../test/support/servers/raw-origin.ts';
import { readOptions } from '../read-options.ts';

const { values } = readOptions({
  start: 'npx node scripts/crash/browser-crash.ts',
  about: `Kills renderers and browsers under load, again and again: every page must end with a result in time, every page that
was lost must be had by trying again, and nothing may be left behind.`,
  options: {
    kills: { count: 100, does: 'how often' },
    seed: { number: 1, does: 'repeats a run' },
    browser: { text: 'bundled', does: 'which one, as the setting `browserPath` names it' },
  },
});
const kills = values.kills;
const PARALLEL = 3;
const TASK_MS = 20_000;
/** Beyond its deadline by this much, a page hangs. */
const HANG_MS = TASK_MS + 5_000;
const ZOMBIE_MS = 5_000;
/** A page that cannot be had by then is lost: each kill may fail it once. */
const TRIES_MAX = 20;

let state = values.seed;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

const PAGE = `<h1>page</h1>${'<p>text</p>'.repeat(200)}<script>for (let i = 0; i < 50; i++) document.body.append(i)</script>`;
const origin = await openRawOrigin({
  '/page': sends(reply('200 OK', ['Content-Type: text/html'], PAGE)),
});
const fetcher = await openBrowserFetcher({
  clock: { now: () => performance.timeOrigin + performance.now() },
  isPublicAddress: () => true,
  browser: { path: values.browser, pages: PARALLEL },
});
const everyBrowser = new Set<number>();
const counts = { pages: 0, failed: 0, triesMax: 0, lost: 0, hangs: 0, codes: {} as Record<string, number> };

function requestFor(): FetchRequest {
  return {
    url: `${origin.url}/page`,
    headers: {},
    timeouts: { connectMs: 10_000, headersMs: 15_000, bodyMs: 15_000, taskMs: TASK_MS },
    bodyBytesMax: 1024 * 1024,
    parallel: PARALLEL,
    allowPrivate: true,
    signal: new AbortController().signal,
    onSent: () => true,
  };
}

async function fetchInTime(fetching: BrowserFetcher): Promise<FetchResult> {
  const startedAt = performance.now();
  const result = await fetching.fetch(requestFor());
  if (performance.now() - startedAt > HANG_MS) counts.hangs++;
  return result;
}

/** As the coordinator does: what fails in a way that passes is tried again. */
async function work(isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    let isDone = false;
    let tries = 0;
    for (; tries < TRIES_MAX && !isDone; tries++) {
      const result = await fetchInTime(fetcher);
      isDone = result.kind === 'response' && result.body.includes('<h1>page</h1>');
      if (result.kind === 'failure') counts.codes[result.code] = (counts.codes[result.code] ?? 0) + 1;
      if (!isDone) counts.failed++;
    }
    counts.pages++;
    counts.triesMax = Math.max(counts.triesMax, tries);
    if (!isDone) counts.lost++;
  }
}

async function killSome(kind: 'renderer' | 'browser'): Promise<void> {
  for (let count = 0; count < kills; ) {
    // At any moment of a page, but only after another one has come through: who kills faster than pages are shown
    // measures nothing.
    const before = counts.pages;
    while (counts.pages === before) await new Promise((resolve) => setTimeout(resolve, 10));
    await new Promise((resolve) => setTimeout(resolve, random() * 300));
    for (const pid of fetcher.pids()) everyBrowser.add(pid);
    const [browser] = fetcher.pids();
    if (browser === undefined) continue;
    const targets = kind === 'browser' ? [browser] : renderersOf(browser);
    const target = targets[Math.floor(random() * targets.length)];
    if (target === undefined) continue;
    try {
      process.kill(target, 'SIGKILL');
      count++;
    } catch {
      // It was faster.
    }
  }
}

async function run(kind: 'renderer' | 'browser'): Promise<void> {
  Object.assign(counts, { pages: 0, failed: 0, triesMax: 0, lost: 0, hangs: 0, codes: {} });
  const startedAt = performance.now();
  let isOver = false;
  const working = Array.from({ length: PARALLEL }, () => work(() => isOver));
  await killSome(kind);
  isOver = true;
  await Promise.all(working);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const codes = JSON.stringify(counts.codes);
  const { pages, failed, triesMax, lost, hangs } = counts;
  say(
    `${kind}: ${kills} kills in ${seconds} s, ${pages} pages, ${failed} tries failed ${codes}, at most ${triesMax} for a page, ${lost} lost, ${hangs} hangs`,
  );
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

say(`seed ${values.seed}, browser ${values.browser}`);
await fetcher.prepare();
let failures = 0;
for (const kind of ['renderer', 'browser'] as const) {
  await run(kind);
  failures += counts.lost + counts.hangs;
}
await fetcher.close();
await origin.close();
await new Promise((resolve) => setTimeout(resolve, ZOMBIE_MS));
const left = [...everyBrowser].flatMap(groupOf);
const watchdogs = listProcesses().filter(({ parent }) => parent === process.pid);
say(`${left.length} processes of ${everyBrowser.size} browsers left after 5 s, ${watchdogs.length} children`);
process.exit(failures + left.length + watchdogs.length === 0 ? 0 : 1);
