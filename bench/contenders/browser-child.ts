import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { log, PlaywrightCrawler } from '@crawlee/playwright';

const [, , list = '', output = '', parallelText = '4', kept] = process.argv;
log.setLevel(log.LEVELS.OFF);
const parallel = Number(parallelText);
const isRoot = process.getuid?.() === 0;
/** Those that it tries again, after a picture that took too long, have another number. */
let begun = 0;
let pages = 0;
// Its browser is shared by all pages; nothing that it does not need here: no visitors of its own making, no made-up fingerprints.
const crawler = new PlaywrightCrawler({
  minConcurrency: parallel,
  maxConcurrency: parallel,
  useSessionPool: false,
  persistCookiesPerSession: false,
  autoscaledPoolOptions: { desiredConcurrency: parallel },
  browserPoolOptions: { useFingerprints: false },
  launchContext: {
    launchOptions: {
      executablePath: process.env.BENCH_CHROMIUM,
      headless: true,
      args: isRoot ? ['--no-sandbox'] : [],
    },
  },
  preNavigationHooks: [
    async ({ page }, options) => {
      await page.setViewportSize({ width: 1280, height: 800 });
      options.waitUntil = 'load';
    },
  ],
  async requestHandler({ page }) {
    const number = begun++;
    if (kept !== 'html') {
      const picture = await page.screenshot({ fullPage: true, type: 'png' });
      await writeFile(join(output, `${number}.png`), picture);
    }
    await writeFile(join(output, `${number}.html`), await page.content());
    pages++;
  },
});
const urls = readFileSync(list, 'utf8').split('\n').filter(Boolean);
const startedAt = performance.now();
await crawler.run(urls);
const seconds = (performance.now() - startedAt) / 1000;
process.stdout.write(`${JSON.stringify({ pages, seconds })}\n`, () => process.exit(0));
