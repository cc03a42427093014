import { type Catalogue, PRODUCTS_PER_PAGE } from './catalogue.ts';
import { imagePath, priceText } from './layout.ts';

/** A list that grows while a visitor scrolls: the page is empty, and its script loads one part after the other. */

export const ENDLESS_PATH = '/new';
const PARTS_MAX = 5;

/** The newest products, in parts; the path of each part has its number. */
export function endlessParts({ products }: Catalogue): { path: string; data: object }[] {
  const newest = products.toReversed().slice(0, PARTS_MAX * PRODUCTS_PER_PAGE);
  const pages = Math.ceil(newest.length / PRODUCTS_PER_PAGE);
  return Array.from({ length: pages }, (_, index) => ({
    path: `/api/new?page=${index + 1}`,
    data: {
      page: index + 1,
      pages,
      total: newest.length,
      products: newest.slice(index * PRODUCTS_PER_PAGE, (index + 1) * PRODUCTS_PER_PAGE).map((product) => ({
        sku: product.sku,
        title: product.title,
        url: product.path,
        image: imagePath(product),
        price: priceText(product),
      })),
    },
  }));
}

export const ENDLESS_HTML = `<h1>New in the shop</h1>
<ul class="grid" id="list"></ul>
<p id="more">Loading…</p>
<script>
const list = document.getElementById('list');
const more = document.getElementById('more');
let page = 0;
let isLoading = false;
const load = async () => {
  if (isLoading) return;
  isLoading = true;
  const part = await (await fetch('/api/new?page=' + (page + 1))).json();
  page = part.page;
  for (const product of part.products) {
    const card = document.createElement('li');
    card.className = 'card';
    card.innerHTML = '<a><h3></h3></a><span class="price"></span>';
    card.querySelector('a').href = product.url;
    card.querySelector('h3').textContent = product.title;
    card.querySelector('.price').textContent = product.price;
    card.style.minHeight = '16rem';
    list.append(card);
  }
  isLoading = false;
  if (page === part.pages) { watcher.disconnect(); more.remove(); }
  else { watcher.unobserve(more); watcher.observe(more); }
};
const watcher = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) load(); });
watcher.observe(more);
</script>`;
