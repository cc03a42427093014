import { escapeHtml } from '../../core/text/escape-html.ts';
import {
  type Catalogue,
  type Category,
  categoryPath,
  PRODUCTS_PER_PAGE,
  type Product,
  pageCountOf,
} from './catalogue.ts';
import { imagePath, layoutPage, priceText, productGrid } from './layout.ts';
import { DEAL_PATH, type Oddities } from './oddities.ts';

export function homePage(catalogue: Catalogue): string {
  const featured = catalogue.products.slice(0, 8);
  const shelves = catalogue.categories
    .map(
      (c) =>
        `<li class="card"><h3><a href="${categoryPath(c)}">${escapeHtml(c.name)}</a></h3>${escapeHtml(c.blurb)}<br><small>${c.products.length} products</small></li>`,
    )
    .join('\n');
  const main = `<h1>Good things, made slowly</h1>
<p>Everyday objects from six small workshops. See the <a href="${DEAL_PATH}">deal of the day</a>.</p>
<ul class="grid">${shelves}</ul>
<h2>Featured</h2>
${productGrid(featured)}`;
  return layoutPage(catalogue, { title: 'Home', main });
}

export function categoryPage(catalogue: Catalogue, category: Category, page: number): string {
  const last = pageCountOf(category);
  const shown = category.products.slice((page - 1) * PRODUCTS_PER_PAGE, page * PRODUCTS_PER_PAGE);
  const numbers = Array.from({ length: last }, (_, i) => i + 1)
    .map((n) => (n === page ? `<b>${n}</b>` : `<a href="${categoryPath(category, n)}">${n}</a>`))
    .join('');
  const next = page < last ? `<a rel="next" href="${categoryPath(category, page + 1)}">Next</a>` : '';
  const main = `<nav class="crumbs"><a href="/">Home</a> / ${escapeHtml(category.name)}</nav>
<h1>${escapeHtml(category.name)}</h1>
<p>${escapeHtml(category.blurb)} ${category.products.length} products, page ${page} of ${last}.</p>
${productGrid(shown)}
<nav class="pager">${numbers}${next}</nav>`;
  const head = `<link rel="canonical" href="${categoryPath(category, page)}">`;
  return layoutPage(catalogue, { title: category.name, main, head });
}

export function productJsonLd(product: Product): object {
  return {
    '@context': 'https://schema.org',
    '@type': 'Product',
    name: product.title,
    sku: product.sku,
    image: imagePath(product),
    brand: { '@type': 'Brand', name: product.brand },
    description: product.description,
    aggregateRating: {
      '@type': 'AggregateRating',
      ratingValue: product.rating,
      reviewCount: product.reviews,
    },
    offers: {
      '@type': 'Offer',
      priceCurrency: 'EUR',
      price: (product.priceCents / 100).toFixed(2),
      availability: `https://schema.org/${product.stock > 0 ? 'InStock' : 'OutOfStock'}`,
    },
  };
}

export function productPage(catalogue: Catalogue, product: Product, oddities: Oddities): string {
  const jsonLd = productJsonLd(product);
  const extras = (oddities.extraLinks.get(product) ?? []).map(
    (path) => `<li><a href="${path}">Previous edition</a></li>`,
  );
  const main = `<nav class="crumbs"><a href="/">Home</a> / <a href="${categoryPath(product.category)}">${escapeHtml(product.category.name)}</a> / ${escapeHtml(product.title)}</nav>
<article class="product" data-id="${product.id}">
<img src="${imagePath(product)}" alt="${escapeHtml(product.title)}" width="320" height="240">
<div>
<h1>${escapeHtml(product.title)}</h1>
<p class="price" data-currency="EUR">${priceText(product)}</p>
<p class="rating">${product.rating.toFixed(1)} / 5 <small>(${product.reviews} reviews)</small></p>
<p class="description">${escapeHtml(product.description)}</p>
<dl><dt>SKU</dt><dd class="sku">${product.sku}</dd><dt>Brand</dt><dd class="brand-name">${escapeHtml(product.brand)}</dd><dt>Stock</dt><dd class="stock">${product.stock}</dd></dl>
<form action="/cart" method="get"><input type="hidden" name="sku" value="${product.sku}"><button>Add to cart</button></form>
</div>
</article>
${extras.length > 0 ? `<h2>Earlier editions</h2>\n<ul class="editions">${extras.join('')}</ul>` : ''}
<h2>You may also like</h2>
<section class="related">${productGrid(product.related)}</section>`;
  // `<` is written as an escape, so that no text of the catalogue can end the script element.
  const head = `<link rel="canonical" href="${product.path}">
<script type="application/ld+json">${JSON.stringify(jsonLd).replaceAll('<', '\\u003c')}</script>`;
  return layoutPage(catalogue, { title: product.title, main, head });
}

const INFO = {
  '/about': [
    'About us',
    '<p>Two carpenters and a lighthouse keeper opened the first shop in a boathouse. We still sell what we use ourselves.</p>',
  ],
  '/help': [
    'Help',
    '<ul><li><a href="/help/shipping">Shipping</a></li><li><a href="/help/returns">Returns</a></li><li><a href="/help/gift-cards">Gift cards</a></li></ul>',
  ],
  '/help/shipping': [
    'Shipping',
    '<p>Parcels leave on Tuesdays and Fridays, by bicycle where the road allows.</p>',
  ],
  '/help/returns': [
    'Returns',
    '<p>Within thirty days, in any state of repair. <a href="../help">More help</a>.</p>',
  ],
} as const;

export const INFO_PATHS = Object.keys(INFO) as (keyof typeof INFO)[];
export const LATIN1_PATH = '/about/histoire';
export const LATIN1_TEXT =
  "<p>Née près d'un phare breton, la maison a gardé l'âme d'un atelier : du bois, du café très noir et beaucoup de patience.</p>";

export function infoText(path: keyof typeof INFO): readonly [title: string, html: string] {
  return INFO[path];
}

export function infoPage(catalogue: Catalogue, path: keyof typeof INFO): string {
  const [title, body] = infoText(path);
  return layoutPage(catalogue, { title, main: `<h1>${title}</h1>\n${body}` });
}

/** To be sent as ISO-8859-1: every character fits in one byte. */
export function latin1Page(catalogue: Catalogue): string {
  const main = `<h1>Notre histoire</h1>
${LATIN1_TEXT}`;
  return layoutPage(catalogue, { title: 'Notre histoire', main, lang: 'fr', charset: 'iso-8859-1' });
}

export function plainPage(catalogue: Catalogue, title: string, text: string): string {
  return layoutPage(catalogue, { title, main: `<h1>${escapeHtml(title)}</h1>\n<p>${escapeHtml(text)}</p>` });
}
