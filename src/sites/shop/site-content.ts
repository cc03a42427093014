import { escapeHtml } from '../../core/text/escape-html.ts';
import { LOGIN_HTML, LOGIN_PATH, ORDERS_HTML, ORDERS_PATH } from './account.ts';
import { type Catalogue, categoryPath, pageCountOf } from './catalogue.ts';
import { ENDLESS_HTML, ENDLESS_PATH, endlessParts } from './endless-list.ts';
import { imagePath, layoutPage } from './layout.ts';
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
    const loc = escapeHtml(origin + path);
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

interface ShopOptions {
  /** Without a trailing slash; sitemaps and robots.txt need absolute URLs. */
  origin: string;
  /** Pages are empty until their script has loaded their data. */
  isScripted?: boolean;
}

export function createContent(
  catalogue: Catalogue,
  oddities: Oddities,
  { origin, isScripted = false }: ShopOptions,
): ContentMap {
  const builder = new ContentBuilder(isScripted);
  addInfoPages(builder, catalogue);
  addScripts(builder, catalogue);
  addTrapPages(builder, catalogue);
  addCategories(builder, catalogue);
  addProducts(builder, catalogue, oddities);
  addUnlinkedPages(builder, catalogue);
  addCrawlerFiles(builder, catalogue, origin);
  return builder.content;
}

class ContentBuilder {
  readonly content: ContentMap = new Map();
  readonly isScripted: boolean;

  constructor(isScripted: boolean) {
    this.isScripted = isScripted;
  }

  file(path: string, type: string, make: () => string): void {
    this.content.set(path, text(type, make));
  }

  json(path: string, make: () => object): void {
    this.file(path, 'application/json', () => JSON.stringify(make()));
  }

  /** A page: whole, or a shell and the data that its script asks for. */
  page(path: string, make: () => string, data: () => object): void {
    this.file(path, HTML, this.isScripted ? shellPage : make);
    if (this.isScripted) this.json(DATA_PREFIX + path, data);
  }
}

function addInfoPages(builder: ContentBuilder, catalogue: Catalogue): void {
  builder.page(
    '/',
    () => homePage(catalogue),
    () => homeData(catalogue),
  );
  for (const path of INFO_PATHS)
    builder.page(
      path,
      () => infoPage(catalogue, path),
      () => textData(...infoText(path)),
    );
  builder.page(
    LATIN1_PATH,
    () => '',
    () => textData('Notre histoire', LATIN1_TEXT),
  );
  if (builder.isScripted) return;
  builder.content.set(LATIN1_PATH, () => ({
    type: 'text/html; charset=iso-8859-1',
    body: Buffer.from(latin1Page(catalogue), 'latin1'),
  }));
}

function addScripts(builder: ContentBuilder, catalogue: Catalogue): void {
  if (!builder.isScripted) return;
  builder.file(CLIENT_SCRIPT_PATH, 'text/javascript', () => CLIENT_SCRIPT);
  builder.json(`${DATA_PREFIX}/menu`, () => menuData(catalogue));
}

/** What robots.txt forbids. */
function addTrapPages(builder: ContentBuilder, catalogue: Catalogue): void {
  const plain = (path: string, title: string, words: string) =>
    builder.page(
      path,
      () => plainPage(catalogue, title, words),
      () => textData(title, `<p>${words}</p>`),
    );
  plain('/cart', 'Your cart', 'It is empty, and it stays so: this is a demonstration.');
  plain('/admin/', 'Staff only', 'A polite crawler never gets here.');
  plain('/admin/login', 'Staff login', 'A polite crawler never gets here.');
}

function addCategories(builder: ContentBuilder, catalogue: Catalogue): void {
  for (const category of catalogue.categories) {
    for (let page = 1; page <= pageCountOf(category); page++) {
      builder.page(
        categoryPath(category, page),
        () => categoryPage(catalogue, category, page),
        () => categoryData(category, page),
      );
    }
  }
}

function addProducts(builder: ContentBuilder, catalogue: Catalogue, oddities: Oddities): void {
  for (const product of catalogue.products) {
    builder.page(
      product.path,
      () => productPage(catalogue, product, oddities),
      () => productData(product, oddities),
    );
    builder.file(imagePath(product), 'image/svg+xml', () => productSvg(product));
  }
  builder.content.set('/images/logo.png', () => ({ type: 'image/png', body: logoPng() }));
}

/** For practice, and on no page: whoever crawls the shop finds what it always had. */
function addUnlinkedPages(builder: ContentBuilder, catalogue: Catalogue): void {
  const html = (path: string, title: string, main: string) =>
    builder.file(path, HTML, () => layoutPage(catalogue, { title, main }));
  html(LOGIN_PATH, 'Log in', LOGIN_HTML);
  html(ORDERS_PATH, 'Your orders', ORDERS_HTML);
  html(ENDLESS_PATH, 'New in the shop', ENDLESS_HTML);
  for (const { path, data } of endlessParts(catalogue)) builder.json(path, () => data);
}

/** robots.txt and the sitemaps. */
function addCrawlerFiles(builder: ContentBuilder, catalogue: Catalogue, origin: string): void {
  const disallow = ROBOTS_DISALLOW.map((path) => `Disallow: ${path}`).join('\n');
  const robots = `User-agent: *\n${disallow}\n\nSitemap: ${origin}/sitemap.xml\n`;
  builder.file('/robots.txt', 'text/plain; charset=utf-8', () => robots);
  builder.file('/sitemap.xml', XML, () => sitemapIndex(origin));
  const products = catalogue.products.map(({ path, updatedOn }) => ({ path, lastmod: updatedOn }));
  builder.file('/sitemap-products.xml', XML, () => urlset(origin, products));
  const pages = ['/', ...INFO_PATHS, LATIN1_PATH, ...categoryPaths(catalogue)].map((path) => ({ path }));
  builder.file('/sitemap-pages.xml', XML, () => urlset(origin, pages));
}
