import { type Catalogue, categoryPath, pageCountOf } from './catalogue.ts';
import { imagePath } from './layout.ts';
import { type Oddities, ROBOTS_DISALLOW } from './oddities.ts';
import {
  categoryPage,
  homePage,
  INFO_PATHS,
  infoPage,
  infoText,
  LATIN1_PATH,
  LATIN1_TEXT,
  latin1Page,
  plainPage,
  productPage,
} from './pages.ts';
import { logoPng, productSvg } from './pictures.ts';
import {
  CLIENT_SCRIPT,
  CLIENT_SCRIPT_PATH,
  categoryData,
  DATA_PREFIX,
  homeData,
  menuData,
  productData,
  shellPage,
  textData,
} from './scripted-pages.ts';

export interface Content {
  type: string;
  body: Buffer;
}

/** What the shop serves by path, made when first asked for. */
type ContentMap = Map<string, () => Content>;

const HTML = 'text/html; charset=utf-8';
const XML = 'application/xml; charset=utf-8';

function text(type: string, make: () => string): () => Content {
  return () => ({ type, body: Buffer.from(make()) });
}

function urlset(origin: string, entries: { path: string; lastmod?: string }[]): string {
  const urls = entries.map(({ path, lastmod }) => {
    const loc = (origin + path).replaceAll('&', '&amp;');
    return `<url><loc>${loc}</loc>${lastmod === undefined ? '' : `<lastmod>${lastmod}</lastmod>`}</url>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${urls.join('\n')}\n</urlset>\n`;
}

function sitemapIndex(origin: string): string {
  const maps = ['/sitemap-pages.xml', '/sitemap-products.xml'].map(
    (path) => `<sitemap><loc>${origin}${path}</loc></sitemap>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${maps.join('\n')}\n</sitemapindex>\n`;
}

export function categoryPaths(catalogue: Catalogue): string[] {
  return catalogue.categories.flatMap((category) =>
    Array.from({ length: pageCountOf(category) }, (_, i) => categoryPath(category, i + 1)),
  );
}

/** `origin` has no trailing slash; sitemaps and robots.txt need absolute URLs. */
export function createContent(
  catalogue: Catalogue,
  oddities: Oddities,
  { origin, isScripted = false }: { origin: string; isScripted?: boolean },
): ContentMap {
  const content: ContentMap = new Map();
  const json = (path: string, make: () => object) =>
    content.set(
      path,
      text('application/json', () => JSON.stringify(make())),
    );
  const html = (path: string, make: () => string, data: () => object) => {
    content.set(path, text(HTML, isScripted ? shellPage : make));
    if (isScripted) json(DATA_PREFIX + path, data);
  };
  const plain = (path: string, title: string, words: string) =>
    html(
      path,
      () => plainPage(catalogue, title, words),
      () => textData(title, `<p>${words}</p>`),
    );

  html(
    '/',
    () => homePage(catalogue),
    () => homeData(catalogue),
  );
  for (const path of INFO_PATHS)
    html(
      path,
      () => infoPage(catalogue, path),
      () => textData(...infoText(path)),
    );
  html(
    LATIN1_PATH,
    () => '',
    () => textData('Notre histoire', LATIN1_TEXT),
  );
  if (isScripted) {
    content.set(
      CLIENT_SCRIPT_PATH,
      text('text/javascript', () => CLIENT_SCRIPT),
    );
    json(`${DATA_PREFIX}/menu`, () => menuData(catalogue));
  } else {
    content.set(LATIN1_PATH, () => ({
      type: 'text/html; charset=iso-8859-1',
      body: Buffer.from(latin1Page(catalogue), 'latin1'),
    }));
  }
  plain('/cart', 'Your cart', 'It is empty, and it stays so: this is a demonstration.');
  plain('/admin/', 'Staff only', 'A polite crawler never gets here.');
  plain('/admin/login', 'Staff login', 'A polite crawler never gets here.');
  for (const category of catalogue.categories) {
    for (let page = 1; page <= pageCountOf(category); page++) {
      html(
        categoryPath(category, page),
        () => categoryPage(catalogue, category, page),
        () => categoryData(category, page),
      );
    }
  }
  for (const product of catalogue.products) {
    html(
      product.path,
      () => productPage(catalogue, product, oddities),
      () => productData(product, oddities),
    );
    content.set(
      imagePath(product),
      text('image/svg+xml', () => productSvg(product)),
    );
  }
  content.set('/images/logo.png', () => ({ type: 'image/png', body: logoPng() }));

  const disallow = ROBOTS_DISALLOW.map((path) => `Disallow: ${path}`).join('\n');
  const robots = `User-agent: *\n${disallow}\n\nSitemap: ${origin}/sitemap.xml\n`;
  content.set(
    '/robots.txt',
    text('text/plain; charset=utf-8', () => robots),
  );
  content.set(
    '/sitemap.xml',
    text(XML, () => sitemapIndex(origin)),
  );
  const products = catalogue.products.map(({ path, updatedOn }) => ({ path, lastmod: updatedOn }));
  content.set(
    '/sitemap-products.xml',
    text(XML, () => urlset(origin, products)),
  );
  const pages = ['/', ...INFO_PATHS, LATIN1_PATH, ...categoryPaths(catalogue)].map((path) => ({ path }));
  content.set(
    '/sitemap-pages.xml',
    text(XML, () => urlset(origin, pages)),
  );
  return content;
}
