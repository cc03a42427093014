import { CheerioCrawler, log } from '@crawlee/cheerio';

const [, , url = '', mode = 'links', pagesText = '1500'] = process.argv;
log.setLevel(log.LEVELS.OFF);
let pages = 0;
// Its default storage on disk; a generous pool from the first second, and no sessions, which it does not need here.
const crawler = new CheerioCrawler({
  minConcurrency: 32,
  maxConcurrency: 64,
  maxRequestsPerCrawl: Number(pagesText),
  useSessionPool: false,
  persistCookiesPerSession: false,
  autoscaledPoolOptions: { desiredConcurrency: 32 },
  async requestHandler({ $, request, enqueueLinks, pushData }) {
    pages += 1;
    if (mode === 'select') {
      await pushData({ url: request.url, title: $('h1').text(), price: $('.price').text() });
    }
    await enqueueLinks({ strategy: 'same-hostname' });
  },
});
const startedAt = performance.now();
await crawler.run([url]);
const seconds = (performance.now() - startedAt) / 1000;
process.stdout.write(`${JSON.stringify({ pages, seconds })}\n`, () => process.exit(0));
