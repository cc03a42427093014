import { defineJob } from 'seine';
import { z } from 'zod';

/** Records are checked, and put into shape, by a zod schema: what does not fit is no success. */

const shop = process.env.JOB_SHOP_URL ?? 'http://127.0.0.1:8080/';

const Product = z.object({
  title: z.string().min(3),
  sku: z.string().regex(/^[A-Z]{3}-\d{5}$/),
  price: z.object({ amount: z.number().positive(), currency: z.literal('EUR') }),
  stock: z.number().int().min(0),
  // One brand that this shop has is not wanted.
  brand: z.string().refine((brand) => brand !== 'Tidewater', 'is not wanted'),
});

export default defineJob({
  name: 'checked',
  sources: new URL('category/kitchen', shop).href,
  routes: [
    {
      name: 'product',
      match: '/product/*',
      select: {
        title: 'h1',
        sku: '.sku',
        brand: '.brand-name',
        price: { css: '.product .price', type: 'money' },
        stock: { css: '.stock', type: 'number' },
      },
      schema: Product.transform(({ price, stock, ...rest }) => ({
        ...rest,
        priceCents: Math.round(price.amount * 100),
        inStock: stock > 0,
      })),
    },
    { name: 'listing', match: '/category/kitchen*' },
  ],
  follow: [
    { match: '/product/*', route: 'product', from: 'listing' },
    { match: '/category/kitchen*', route: 'listing' },
  ],
  // Pages that do not fit are tried again, since a shop may have shown an error; here once.
  retry: { attempts: 2, baseMs: 100 },
  politeness: { rate: 100 },
  allowPrivate: true,
});
