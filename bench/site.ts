/**
 * The site that every contender crawls: pages of about 24 KB with exactly 33 links, all reachable from `/`,
 * no two alike. Deterministic: the same number of pages always gives the same bytes.
 *
 * Two kinds of markup, since the ratios depend on it. `plain` is ASCII with about 180 elements a page. `rich`
 * has nearly twice the elements and letters beyond ASCII, as shops have; spider-rs spent about 2.6 times the CPU
 * on it. The bars are judged on `plain`, the one that is kinder to spider-rs.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MATERIALS, SHELVES, THINGS, WORDS } from './site-words.ts';

export type Markup = 'plain' | 'rich';
const LINKS_PER_PAGE = 33;
const BYTES_MEAN = 24 * 1024;
const CHILDREN = 12;
type Random = (below: number) => number;

/** mulberry32: small, fast and the same everywhere; a stream per page, so that no page depends on another. */
function randomOf(seed: number): Random {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

export function pagePath(index: number): string {
  if (index === 0) return '/';
  const material = MATERIALS[(index * 7) % MATERIALS.length];
  const thing = THINGS[(index * 11) % THINGS.length];
  return `/shop/${SHELVES[index % SHELVES.length]}/${material}-${thing}-${index}.html`;
}

/** A tree from page 0 makes every page reachable; the rest of the 33 point anywhere, as menus and offers do. */
function pageLinks(index: number, pages: number): number[] {
  const random = randomOf(index * 2 + 1);
  const links = new Set<number>();
  for (let child = index * CHILDREN + 1; child <= index * CHILDREN + CHILDREN && child < pages; child++) {
    links.add(child);
  }
  const distinctMax = Math.min(LINKS_PER_PAGE, pages - 1);
  while (links.size < distinctMax) {
    const target = random(pages);
    if (target !== index) links.add(target);
  }
  const all = [...links];
  while (all.length < LINKS_PER_PAGE) all.push(all[all.length % distinctMax] ?? 0);
  return all;
}

function pageName(index: number): string {
  const material = MATERIALS[(index * 7) % MATERIALS.length]!;
  return `${material[0]!.toUpperCase()}${material.slice(1)} ${THINGS[(index * 11) % THINGS.length]} no. ${index}`;
}

function pagePrice(index: number): string {
  return `EUR ${(((index * 7919) % 90_000) / 100 + 5).toFixed(2)}`;
}

const word = (random: Random): string => WORDS[random(WORDS.length)]!;

function prose(random: Random, sentences: number, markup: Markup): string {
  let text = '';
  for (let at = 0; at < sentences; at++) {
    const first = word(random);
    text += first[0]!.toUpperCase() + first.slice(1);
    for (let left = 7 + random(14); left > 0; left--) {
      text += (random(11) === 0 ? ', ' : ' ') + word(random);
      if (random(160) === 0) text += ' &amp;';
      if (markup === 'rich' && random(90) === 0) text += ' café – “naïve”';
    }
    text += '. ';
  }
  return text;
}

function offer(random: Random, target: number, markup: Markup): string {
  const name = pageName(target);
  const link = `<a class="offer-link" href="${pagePath(target)}">${name}</a>`;
  if (markup === 'plain') return `    <li class="offer">${link} <b>${pagePrice(target)}</b></li>\n`;
  return (
    `    <li class="offer offer--${random(4)}" data-sku="SKU-${100_000 + target}"><article>\n` +
    `      <img src="/img/${target % 997}-s.jpg" alt="${name}" width="240" height="180" loading="lazy">\n` +
    `      <h3>${link}</h3><span class="cost">€ ${target}</span><span class="stars">★★★</span>\n    </article></li>\n`
  );
}

function paragraph(random: Random, markup: Markup): string {
  if (markup === 'plain' || random(3) > 0) {
    return `    <p class="body-${random(6)}">${prose(random, 3 + random(4), markup)}</p>\n`;
  }
  return (
    `    <div class="review" id="r${random(1e9)}"><p><b>${word(random)}${random(900)}</b> <time>${1 + random(28)} ` +
    `days ago</time></p><p>${prose(random, 2 + random(2), markup)}</p></div>\n`
  );
}

function pageHtml(index: number, pages: number, markup: Markup = 'plain'): string {
  const random = randomOf(index * 2 + 2);
  const links = pageLinks(index, pages);
  const name = pageName(index);
  let html =
    `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>${name} | The Corner Shop</title>\n` +
    `<meta name="description" content="${prose(random, 1, 'plain')}">\n` +
    `<style>body{font:16px/1.5 serif;margin:0}.offers{gap:${random(9)}px}.price{color:#${100_000 + random(800_000)}}</style>\n` +
    `<script type="application/ld+json">{"@type":"Product","sku":"${100_000 + index}","name":"${name}"}</script>\n` +
    '</head>\n<body>\n<header class="top"><nav aria-label="main"><ul>\n';
  for (const target of links.slice(0, 8)) {
    html += `  <li class="nav-item"><a href="${pagePath(target)}">${pageName(target)}</a></li>\n`;
  }
  html += `</ul></nav></header>\n<!-- rendered ${random(1e9)} -->\n<main class="product">\n  <h1>${name}</h1>\n`;
  html += `  <p class="buy"><span class="price" data-currency="EUR">${pagePrice(index)}</span>`;
  html += ` <button type="button" class="btn btn--main" data-id="${index}">Add to basket</button></p>\n  <table class="specs">\n`;
  for (let row = markup === 'plain' ? 6 : 14; row > 0; row--) {
    html += `    <tr><th scope="row">${word(random)}</th><td>${random(500)} ${word(random)}</td></tr>\n`;
  }
  html += '  </table>\n  <section class="related"><h2>Also in the shop</h2>\n   <ul class="offers">\n';
  for (const target of links.slice(8)) html += offer(random, target, markup);
  html += '   </ul>\n  </section>\n  <section class="text">\n';
  const lengthWanted = BYTES_MEAN - 2_048 + random(4_097) - 350;
  while (html.length < lengthWanted) html += paragraph(random, markup);
  return `${html}  </section>\n</main>\n<footer><small>The Corner Shop, page ${index}</small></footer>\n</body>\n</html>\n`;
}

/** Writes the site and returns its size; an empty robots.txt lets polite crawlers keep their rules on. */
export function writeSite(folder: string, pages: number, markup: Markup = 'plain'): { bytes: number } {
  for (const shelf of SHELVES) mkdirSync(join(folder, 'shop', shelf), { recursive: true });
  writeFileSync(join(folder, 'robots.txt'), 'User-agent: *\nDisallow:\n');
  let bytes = 0;
  for (let index = 0; index < pages; index++) {
    const body = Buffer.from(pageHtml(index, pages, markup));
    bytes += body.length;
    writeFileSync(join(folder, index === 0 ? 'index.html' : pagePath(index)), body);
  }
  return { bytes };
}
