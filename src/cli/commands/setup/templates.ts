/** Jobs that `seine init` writes. Each is there as TypeScript and as YAML, and both say the same. */

export const PRACTICE_SHOP = 'http://127.0.0.1:8080/';

interface Template {
  /** Of the job file, without its ending. */
  name: string;
  typescript(url: string): string;
  yaml(url: string): string;
  /** Lists that the job reads. */
  files?(url: string): Record<string, string>;
  /** What the practice shop has to be started with. */
  shopOptions?: string;
  /** What is done with the results. */
  results: string;
}

const isPractice = (url: string) => url === PRACTICE_SHOP;

/** For the practice shop only: on the sites of others, the defaults are polite. */
const practice = (url: string) =>
  isPractice(url)
    ? `
  // For the practice shop on this machine. Leave both out for the sites of others.
  allowPrivate: true,
  politeness: { rate: 50 },`
    : '';
const practiceYaml = (url: string) =>
  isPractice(url)
    ? `# For the practice shop on this machine. Leave both out for the sites of others.
allowPrivate: true
politeness: { rate: 50 }
`
    : '';

const quoted = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`;
/** JSON is YAML, and needs no other care. */
const quotedYaml = (text: string) => JSON.stringify(text);

const typescriptOf = (body: string, url: string) => {
  const lines = [
    "import { defineJob } from 'seine';",
    '',
    'export default defineJob({',
    `${body}${practice(url)}`,
    '});',
  ];
  return `${lines.join('\n')}\n`;
};

const shop: Template = {
  name: 'shop',
  typescript: (url) =>
    typescriptOf(
      `  sources: ${quoted(url)},
  // The first rule that matches a link applies. Higher priority is fetched first.
  follow: [{ match: '/product/*', priority: 10 }, { match: '/category/*' }],
  routes: [
    {
      name: 'product',
      match: '/product/*',
      select: {
        title: 'h1',
        price: { css: '.product .price', type: 'money' },
        sku: '.sku',
        image: '.product img@src',
      },
    },
  ],`,
      url,
    ),
  yaml: (url) => `sources: ${quotedYaml(url)}
# The first rule that matches a link applies. Higher priority is fetched first.
follow:
  - { match: /product/*, priority: 10 }
  - { match: /category/* }
routes:
  - name: product
    match: /product/*
    select:
      title: h1
      price: { css: .product .price, type: money }
      sku: .sku
      image: .product img@src
${practiceYaml(url)}`,
  results: 'npx seine export shop --format csv',
};

const images: Template = {
  name: 'images',
  typescript: (url) =>
    typescriptOf(
      `  // One URL a row; the other columns stay with each image.
  sources: { file: 'images.csv' },
  routes: [{ name: 'image', kind: 'media' }],
  // By their content: an error page under the name of an image is not one.
  media: { types: ['image/*'] },`,
      url,
    ),
  yaml: (url) => `# One URL a row; the other columns stay with each image.
sources: { file: images.csv }
routes:
  - { name: image, kind: media }
# By their content: an error page under the name of an image is not one.
media: { types: [image/*] }
${practiceYaml(url)}`,
  files: (url) => {
    const rows = isPractice(url)
      ? ['images/logo.png,the mark', ...[1, 2, 3].map((id) => `images/${id}.svg,product ${id}`)]
      : [','];
    return { 'images.csv': `url,caption\n${rows.map((row) => `${url}${row}\n`).join('')}` };
  },
  results: 'npx seine export images --what media --format csv',
};

const sitemap: Template = {
  name: 'sitemap',
  typescript: (url) =>
    typescriptOf(
      `  // All sitemaps that robots.txt names, or /sitemap.xml.
  sources: ${quoted(`sitemap:${url}`)},
  // The main content of each page, without menus.
  routes: [{ name: 'page', markdown: true }],`,
      url,
    ),
  yaml: (url) => `# All sitemaps that robots.txt names, or /sitemap.xml.
sources: ${quotedYaml(`sitemap:${url}`)}
# The main content of each page, without menus.
routes:
  - { name: page, markdown: true }
${practiceYaml(url)}`,
  results: 'npx seine export sitemap -o pages.jsonl',
};

const browser: Template = {
  name: 'browser',
  typescript: (url) =>
    typescriptOf(
      `  sources: ${quoted(url)},
  follow: [{ match: '/product/*' }],
  // The listing pages need a browser, too: their links are drawn by scripts.
  routes: [
    { name: 'product', match: '/product/*', fetcher: 'browser', select: { title: 'h1', price: '.product .price' } },
    { name: 'listing', fetcher: 'browser' },
  ],
  limits: { pages: 5 },`,
      url,
    ),
  yaml: (url) => `sources: ${quotedYaml(url)}
follow:
  - { match: /product/* }
# The listing pages need a browser, too: their links are drawn by scripts.
routes:
  - { name: product, match: /product/*, fetcher: browser, select: { title: h1, price: .product .price } }
  - { name: listing, fetcher: browser }
limits: { pages: 5 }
${practiceYaml(url)}`,
  shopOptions: ' --scripted',
  results: 'npx seine export browser --format csv',
};

const empty: Template = {
  name: 'job',
  typescript: (url) =>
    typescriptOf(`  sources: ${quoted(url)},\n  routes: [{ name: 'page', select: { title: 'h1' } }],`, url),
  yaml: (url) => `sources: ${quotedYaml(url)}
routes:
  - { name: page, select: { title: h1 } }
${practiceYaml(url)}`,
  results: 'npx seine export job',
};

export const TEMPLATES: Record<string, Template> = { shop, images, sitemap, browser, empty };

/** Five lines: what to install, to start, to try, to run and to look at. */
export function readmeOf(template: Template, file: string, url: string): string {
  const start = isPractice(url)
    ? `2. \`npx seine shop${template.shopOptions ?? ''}\` in another terminal serves the practice shop that the job reads.`
    : `2. The job reads ${url}; change the selectors in ${file} to what its pages have.`;
  const lines = [
    '1. `npm install seine` (needs Node 22.19 or later).',
    start,
    template.name === 'images'
      ? `3. \`npx seine run ${file} --dry-run\` says what the job would do.`
      : `3. \`npx seine try ${file}\` fetches one page and shows what the job makes of it.`,
    `4. \`npx seine run ${file}\` runs the job; run it again after an interruption, and it goes on.`,
    `5. \`${template.results}\` prints the results; \`npx seine\` alone says what to do next.`,
  ];
  return `${lines.join('\n')}\n`;
}
