import { defineJob } from 'seine';

/** A shop: one record for each product, products before listings. `shop.yaml` says the same. */

const shop = process.env.JOB_SHOP_URL ?? 'http://127.0.0.1:8080/';

export default defineJob({
  name: 'shop',
  sources: shop,
  routes: [
    {
      name: 'product',
      match: '/product/*',
      select: {
        title: 'h1',
        price: '.product .price',
        sku: '.sku',
        image: '.product img@src',
        related: { css: '.related h3', all: true },
      },
    },
    { name: 'listing', match: ['/', '/category/*'] },
  ],
  follow: [
    { match: '/product/*', route: 'product', priority: 10 },
    { match: '/category/*', route: 'listing' },
  ],
  // Our own shop, on this machine. For the shops of others leave both out: 4 requests a second, public addresses.
  politeness: { rate: 100 },
  allowPrivate: true,
});
