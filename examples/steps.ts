import { defineJob } from 'seine';

/** The way of a record: clean → validate → dedupe → store, each replaced by a function here. All may be async. */

const shop = process.env.JOB_SHOP_URL ?? 'http://127.0.0.1:8080/';

export default defineJob({
  name: 'offers',
  sources: new URL('category/lighting', shop).href,
  routes: [
    {
      name: 'product',
      match: '/product/*',
      select: {
        title: 'h1',
        sku: '.sku',
        price: { css: '.product .price', type: 'number' },
        stock: { css: '.stock', type: 'number' },
      },
      // Null drops a record: what is nearly sold out is no offer.
      clean: (record) =>
        Number(record.stock) < 20 ? null : { ...record, sku: String(record.sku).toLowerCase() },
      // A text says what is wrong; the page is then tried again, and at last a dead letter.
      validate: ({ price }) => (typeof price === 'number' && price > 0 ? null : `the price is ${price}`),
      // Records of one key are one.
      dedupe: ({ sku }) => `sku:${sku}`,
      // What is written in its place: several records get the key and their place.
      store: async ({ title, sku, price }) => [
        { kind: 'name', sku, title },
        { kind: 'price', sku, price },
      ],
    },
    { name: 'listing', match: '/category/lighting*' },
  ],
  follow: [
    { match: '/product/*', route: 'product', from: 'listing' },
    { match: '/category/lighting*', route: 'listing' },
  ],
  politeness: { rate: 100 },
  allowPrivate: true,
});
