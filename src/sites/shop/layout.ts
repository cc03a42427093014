import { escapeHtml } from '../../core/text/escape-html.ts';
import { type Catalogue, categoryPath, type Product } from './catalogue.ts';

/** The frame around every page, and the small parts that pages share. */

export const STYLE = `
:root{--ink:#22302e;--soft:#66756f;--line:#e3e0d8;--paper:#fbfaf6;--card:#fff;--accent:#1f6f64}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 Georgia,'Times New Roman',serif}
h1{line-height:1.2;margin:.2rem 0 .8rem}a{color:var(--accent)}header,footer{padding:1rem max(1.2rem,calc(50vw - 34.8rem));background:var(--card);border-bottom:1px solid var(--line)}
header{display:flex;gap:1.4rem;flex-wrap:wrap;align-items:center}header a{text-decoration:none}
.brand{font-size:1.35rem;font-weight:bold;color:var(--ink);display:flex;gap:.5rem;align-items:center}
footer{border:0;border-top:1px solid var(--line);margin-top:3rem;color:var(--soft);font-size:.9rem}footer a{margin-right:1rem}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1.2rem}.crumbs{color:var(--soft);font-size:.9rem;margin-bottom:1rem}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:1rem;padding:0;list-style:none}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.9rem}
.card img{width:100%;height:auto;border-radius:6px}.card h3{font-size:1rem;margin:.6rem 0 .2rem}.card a{text-decoration:none;color:inherit}
.price{font-weight:bold;color:var(--accent)}.product{display:grid;grid-template-columns:minmax(14rem,24rem) 1fr;gap:2rem}
.product img{width:100%;height:auto;border-radius:12px}.product .price{font-size:1.6rem}dl{display:grid;grid-template-columns:6rem 1fr;margin:1rem 0}
dt{color:var(--soft)}dd{margin:0}.pager{display:flex;gap:.6rem;margin:1.5rem 0}.pager a,.pager b{padding:.2rem .7rem;border:1px solid var(--line);border-radius:6px;text-decoration:none}
button{font:inherit;padding:.5rem 1.2rem;border:0;border-radius:8px;background:var(--accent);color:#fff}
@media(max-width:40rem){.product{grid-template-columns:1fr}}`.trim();

export function priceText(product: Product): string {
  return `€${(product.priceCents / 100).toFixed(2)}`;
}

export function imagePath(product: Product): string {
  return `/images/${product.id}.svg`;
}

function productCard(product: Product): string {
  return `<li class="card"><a href="${product.path}"><img src="${imagePath(product)}" alt="" width="320" height="240" loading="lazy">
<h3>${escapeHtml(product.title)}</h3></a><span class="price">${priceText(product)}</span></li>`;
}

export function productGrid(products: readonly Product[]): string {
  return `<ul class="grid">\n${products.map(productCard).join('\n')}\n</ul>`;
}

interface PageParts {
  title: string;
  main: string;
  head?: string;
  lang?: string;
  charset?: string;
}

export function layoutPage(catalogue: Catalogue, parts: PageParts): string {
  const menu = catalogue.categories
    .map((c) => `<a href="${categoryPath(c)}">${escapeHtml(c.name)}</a>`)
    .join('\n');
  return `<!doctype html>
<html lang="${parts.lang ?? 'en'}">
<head>
<meta charset="${parts.charset ?? 'utf-8'}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(parts.title)} · Harbour &amp; Pine</title>
<link rel="icon" href="/images/logo.png">
<style>${STYLE}</style>
${parts.head ?? ''}
</head>
<body>
<header>
<a class="brand" href="/"><img src="/images/logo.png" alt="" width="28" height="28"> Harbour &amp; Pine</a>
${menu}
<a href="/cart" rel="nofollow">Cart</a>
</header>
<main>
${parts.main}
</main>
<footer>
<a href="/about">About us</a><a href="/about/histoire">Notre histoire</a><a href="/help">Help</a>
<a href="/help/shipping">Shipping</a><a href="/help/returns">Returns</a><a href="mailto:hello@shop.invalid">Write to us</a>
<a href="/admin/">Staff</a><a href="/admin/login">Staff login</a>
<p>A made-up shop, served from this machine. Nothing is for sale.</p>
</footer>
</body>
</html>
`;
}
