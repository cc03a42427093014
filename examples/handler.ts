import { defineJob, type Page } from 'seine';

/** Two shelves of a shop, read by code: handlers return records and say which links to follow. */

const shop = process.env.JOB_SHOP_URL ?? 'http://127.0.0.1:8080/';
const shelves = ['lighting', 'kitchen'];

interface ProductData {
  name: string;
  sku: string;
  offers: { price: string; availability: string };
}

/** What is returned becomes a record. The listing has told us the shelf. */
function readProduct(page: Page) {
  const json = page.textOf('script[type="application/ld+json"]');
  if (json === null) return null;
  const { name, sku, offers } = JSON.parse(json) as ProductData;
  return {
    sku,
    name,
    shelf: page.meta?.shelf ?? null,
    priceCents: Math.round(Number(offers.price) * 100),
    inStock: offers.availability.endsWith('/InStock'),
  };
}

/** Nothing is returned, so a listing gives no record. */
function readListing(page: Page) {
  const shelf = page.textOf('main h1');
  for (const link of page.all('main .card > a')) {
    page.follow(link.attribs.href!, { route: 'product', priority: 10, meta: { shelf } });
  }
  const next = page.attributeOf('.pager a[rel=next]', 'href');
  if (next !== null) page.follow(next, { route: 'listing' });
}

export default defineJob({
  name: 'shelves',
  sources: shelves.map((shelf) => new URL(`category/${shelf}`, shop).href),
  routes: [
    { name: 'product', match: '/product/*', handler: readProduct },
    { name: 'listing', match: '/category/*', handler: readListing },
  ],
  politeness: { rate: 100 },
  allowPrivate: true,
});
