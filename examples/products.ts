import { defineJob } from 'seine';

/** Typed fields: prices, numbers, addresses, structured data. What must be there is said, and everything is checked. */

const shop = process.env.JOB_SHOP_URL ?? 'http://127.0.0.1:8080/';

export default defineJob({
  name: 'products',
  sources: new URL('category/lighting', shop).href,
  routes: [
    {
      name: 'product',
      match: '/product/*',
      // A page without these is tried again, and is no success.
      require: ['article.product', 'h1'],
      select: {
        name: { jsonLd: 'Product.name', required: true },
        sku: { jsonLd: 'Product.sku', required: true },
        // The currency stands beside the price.
        price: { jsonLd: 'Product.offers.price', type: 'money', required: true },
        shownPrice: { css: '.product .price', type: 'money' },
        availability: { jsonLd: 'Product.offers.availability', regex: '[^/]+$' },
        stock: { css: '.stock', type: 'number' },
        rating: { css: '.rating', type: 'number' },
        reviews: { css: '.rating small', type: 'number' },
        image: { css: '.product img', attr: 'src', type: 'url' },
        description: { css: '.description', type: 'html' },
      },
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
