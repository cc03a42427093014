import {
  type Catalogue,
  type Category,
  categoryPath,
  PRODUCTS_PER_PAGE,
  type Product,
  pageCountOf,
} from './catalogue.ts';
import { imagePath, priceText, STYLE } from './layout.ts';
import { DEAL_PATH, type Oddities } from './oddities.ts';
import { productJsonLd } from './pages.ts';

/** The same shop as an application of the browser: every page is this shell, and a script draws it from JSON. */

export const CLIENT_SCRIPT_PATH = '/app.js';
export const DATA_PREFIX = '/api';

export function shellPage(): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Harbour &amp; Pine</title>
<style>${STYLE}</style>
<script src="${CLIENT_SCRIPT_PATH}" defer></script>
</head>
<body>
<noscript>You need to enable JavaScript to visit this shop.</noscript>
<div id="app"></div>
</body>
</html>
`;
}

const cardData = (product: Product) => ({
  path: product.path,
  title: product.title,
  price: priceText(product),
  image: imagePath(product),
});

export function homeData({ categories, products }: Catalogue): object {
  return {
    kind: 'home',
    title: 'Home',
    deal: DEAL_PATH,
    shelves: categories.map((category) => ({
      path: categoryPath(category),
      name: category.name,
      blurb: category.blurb,
      count: category.products.length,
    })),
    featured: products.slice(0, 8).map(cardData),
  };
}

export function categoryData(category: Category, page: number): object {
  const last = pageCountOf(category);
  const shown = category.products.slice((page - 1) * PRODUCTS_PER_PAGE, page * PRODUCTS_PER_PAGE);
  return {
    kind: 'category',
    title: category.name,
    canonical: categoryPath(category, page),
    blurb: `${category.blurb} ${category.products.length} products, page ${page} of ${last}.`,
    products: shown.map(cardData),
    page,
    pages: Array.from({ length: last }, (_, index) => categoryPath(category, index + 1)),
  };
}

export function productData(product: Product, oddities: Oddities): object {
  return {
    kind: 'product',
    canonical: product.path,
    ...cardData(product),
    category: { path: categoryPath(product.category), name: product.category.name },
    rating: `${product.rating.toFixed(1)} / 5`,
    reviews: product.reviews,
    description: product.description,
    sku: product.sku,
    brand: product.brand,
    stock: product.stock,
    editions: oddities.extraLinks.get(product) ?? [],
    related: product.related.map(cardData),
    jsonLd: productJsonLd(product),
  };
}

/** Pages of plain words. */
export function textData(title: string, html: string): object {
  return { kind: 'text', title, html };
}

export function menuData({ categories }: Catalogue): object {
  return categories.map((category) => ({ path: categoryPath(category), name: category.name }));
}

/** Draws what the server of the other shop writes: the same elements, the same texts. */
export const CLIENT_SCRIPT = `
const text = (value) => String(value).replace(/[&<>"]/g, (c) => '&#' + c.charCodeAt(0) + ';');
const link = (path, words, more = '') => '<a href="' + text(path) + '"' + more + '>' + words + '</a>';
const card = (p) => '<li class="card">' + link(p.path, '<img src="' + text(p.image) + '" alt="" width="320" height="240" loading="lazy"><h3>' + text(p.title) + '</h3>') + '<span class="price">' + text(p.price) + '</span></li>';
const grid = (products) => '<ul class="grid">' + products.map(card).join('') + '</ul>';
const crumbs = (...parts) => '<nav class="crumbs">' + [link('/', 'Home'), ...parts].join(' / ') + '</nav>';
const draw = {
  home: (d) => '<h1>Good things, made slowly</h1><p>Everyday objects from six small workshops. See the ' + link(d.deal, 'deal of the day') + '.</p><ul class="grid">' +
    d.shelves.map((s) => '<li class="card"><h3>' + link(s.path, text(s.name)) + '</h3>' + text(s.blurb) + '<br><small>' + s.count + ' products</small></li>').join('') +
    '</ul><h2>Featured</h2>' + grid(d.featured),
  category: (d) => crumbs(text(d.title)) + '<h1>' + text(d.title) + '</h1><p>' + text(d.blurb) + '</p>' + grid(d.products) + '<nav class="pager">' +
    d.pages.map((path, i) => i + 1 === d.page ? '<b>' + d.page + '</b>' : link(path, i + 1)).join('') +
    (d.page < d.pages.length ? link(d.pages[d.page], 'Next', ' rel="next"') : '') + '</nav>',
  product: (d) => crumbs(link(d.category.path, text(d.category.name)), text(d.title)) +
    '<article class="product"><img src="' + text(d.image) + '" alt="' + text(d.title) + '" width="320" height="240"><div><h1>' + text(d.title) + '</h1><p class="price" data-currency="EUR">' + text(d.price) +
    '</p><p class="rating">' + d.rating + ' <small>(' + d.reviews + ' reviews)</small></p><p class="description">' + text(d.description) +
    '</p><dl><dt>SKU</dt><dd class="sku">' + text(d.sku) + '</dd><dt>Brand</dt><dd class="brand-name">' + text(d.brand) + '</dd><dt>Stock</dt><dd class="stock">' + d.stock +
    '</dd></dl><form action="/cart" method="get"><input type="hidden" name="sku" value="' + text(d.sku) + '"><button>Add to cart</button></form></div></article>' +
    (d.editions.length > 0 ? '<h2>Earlier editions</h2><ul class="editions">' + d.editions.map((path) => '<li>' + link(path, 'Previous edition') + '</li>').join('') + '</ul>' : '') +
    '<h2>You may also like</h2><section class="related">' + grid(d.related) + '</section>',
  text: (d) => '<h1>' + text(d.title) + '</h1>' + d.html,
};
const head = (data) => {
  document.title = data.title + ' · Harbour & Pine';
  if (data.canonical) document.head.insertAdjacentHTML('beforeend', '<link rel="canonical" href="' + text(data.canonical) + '">');
  if (!data.jsonLd) return;
  const script = document.createElement('script');
  script.type = 'application/ld+json';
  script.textContent = JSON.stringify(data.jsonLd);
  document.head.append(script);
};
const load = async (path) => (await fetch('${DATA_PREFIX}' + path)).json();
const start = async () => {
  const [menu, data] = await Promise.all([load('/menu'), load(location.pathname + location.search)]);
  head(data);
  document.getElementById('app').innerHTML = '<header>' + link('/', 'Harbour &amp; Pine', ' class="brand"') +
    menu.map((m) => link(m.path, text(m.name))).join('') + link('/cart', 'Cart', ' rel="nofollow"') + '</header><main>' + draw[data.kind](data) + '</main><footer>' +
    link('/about', 'About us') + link('/about/histoire', 'Notre histoire') + link('/help', 'Help') + link('/help/shipping', 'Shipping') + link('/help/returns', 'Returns') +
    link('/admin/', 'Staff') + link('/admin/login', 'Staff login') + '<p>A made-up shop, served from this machine. Nothing is for sale.</p></footer>';
};
start();
`.trimStart();
