import { type NPage, Website } from '@spider-rs/spider-rs';
import { compile, selectOne } from 'css-select';
import { textContent } from 'domutils';
import { parseDocument } from 'htmlparser2';

const [, , url = '', mode = 'links'] = process.argv;
// This host only, no delay, no robots; the rest are its defaults.
const website = new Website(url)
  .withRespectRobotsTxt(false)
  .withSubdomains(false)
  .withTld(false)
  .withDelay(0)
  .build();

const startedAt = performance.now();
if (mode === 'links') {
  await website.crawl();
} else {
  const title = compile('h1');
  const price = compile('.price');
  let selected = 0;
  await website.crawl((_error: Error | null, page: NPage) => {
    const document = parseDocument(page.content);
    const found = [selectOne(title, document), selectOne(price, document)];
    if (found.every((node) => node !== null && textContent(node) !== '')) selected += 1;
  });
  // The crawl may return before the last pages have come over.
  const expected = website.getLinks().length;
  while (selected < expected) await new Promise((resolve) => setTimeout(resolve, 5));
}
const seconds = (performance.now() - startedAt) / 1000;
process.stdout.write(`${JSON.stringify({ pages: website.getLinks().length, seconds })}\n`, () =>
  process.exit(0),
);
