import { openBrowserFetcher } from '../../../src/fetch/browser/browser-fetcher.ts';

/** A process of its own with a browser, to be killed: says the number of the browser's group and then waits. */
const fetcher = await openBrowserFetcher({
  clock: { now: () => performance.timeOrigin + performance.now() },
  isPublicAddress: () => true,
  browser: { path: 'bundled' },
});
await fetcher.prepare();
process.stdout.write(`${fetcher.pids()[0]}\n`);
setInterval(() => {}, 60_000);
