import { defineJob } from 'seine';

/** Listings and product pages tell of the same products: what both say becomes one record, by its key. */

const shop = process.env.JOB_SHOP_URL ?? 'http://127.0.0.1:8080/';

export default defineJob({
  name: 'catalogue',
  sources: new URL('category/lighting', shop).href,
  routes: [
    {
      name: 'product',
      match: '/product/*',
      key: 'url',
      select: {
        url: { css: 'link[rel=canonical]', attr: 'href', type: 'url' },
        sku: '.sku',
        brand: '.brand-name',
        // Name and value follow each other.
        details: { css: 'article dt', all: true, fields: { name: {}, value: '+ dd' } },
      },
    },
    {
      name: 'listing',
      match: '/category/lighting*',
      key: 'url',
      select: {
        products: {
          css: 'main .card',
          all: true,
          fields: {
            url: { css: '> a', attr: 'href', type: 'url', required: true },
            name: 'h3',
            price: { css: '.price', type: 'money' },
          },
        },
      },
      // A record for each product, instead of one with a list.
      handler: (_page, selected) => selected?.products,
    },
  ],
  follow: [
    { match: '/product/*', route: 'product', from: 'listing' },
    { match: '/category/lighting*', route: 'listing' },
  ],
  politeness: { rate: 100 },
  allowPrivate: true,
});
