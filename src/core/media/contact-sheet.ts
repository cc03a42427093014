import type { ShotRef, ShotRow } from '../model.ts';
import { escapeHtml } from '../text/escape-html.ts';

/** One page of a contact sheet as HTML: pictures that the blobs already have, made small by the browser that shows it. */

/** All that was made of one visit to a page. */
export interface SheetTile {
  url: string;
  httpStatus: number | null;
  failureCode: string | null;
  takenAt: string;
  shots: ShotRef[];
}

interface SheetPage {
  /** Name and run of the job. */
  title: string;
  tiles: SheetTile[];
  /** File names of the neighbouring pages. */
  newer: string | null;
  older: string | null;
  /** How to get from the sheet to the keys of blobs. */
  root: string;
}

/** Adds a row to the tiles: those of one visit follow each other, and are one tile. */
export function addToTiles(tiles: SheetTile[], row: ShotRow): void {
  const { url, httpStatus, failureCode, takenAt, kind, key, type, bytes } = row;
  const shot = { kind, key, type, bytes };
  const last = tiles.at(-1);
  if (last && last.url === url && last.takenAt === takenAt) last.shots.push(shot);
  else tiles.push({ url, httpStatus, failureCode, takenAt, shots: [shot] });
}

export function renderSheet({ title, tiles, newer, older, root }: SheetPage): string {
  const failures = tiles.filter(hasFailed).length;
  const count = `${tiles.length} ${tiles.length === 1 ? 'page' : 'pages'}${failures > 0 ? `, ${failures} failed` : ''}`;
  const pager = [
    newer === null ? '' : `<a href="${escapeHtml(newer)}">← newer</a>`,
    older === null ? '' : `<a href="${escapeHtml(older)}">older →</a>`,
  ].join(' ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src file: http: https:; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(title)} · contact sheet</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>${escapeHtml(title)}</h1><span>${count}</span><nav>${pager}</nav></header>
<main>
${tiles.map((tile) => renderTile(tile, root)).join('\n')}
</main>
<footer>${pager}</footer>
</body>
</html>
`;
}

function renderTile(tile: SheetTile, root: string): string {
  const { url, shots, httpStatus, failureCode, takenAt } = tile;
  const picture = shots.find(({ type }) => type.startsWith('image/'));
  const link = (shot: ShotRef, inside: string) => `<a href="${escapeHtml(root + shot.key)}">${inside}</a>`;
  const shown = picture
    ? link(picture, `<img src="${escapeHtml(root + picture.key)}" alt="" loading="lazy">`)
    : '<span class="none">no screenshot</span>';
  const others = shots.filter((shot) => shot !== picture).map((shot) => link(shot, WORDS[shot.kind]));
  const status = failureCode ?? httpStatus ?? '';
  return `<figure${hasFailed(tile) ? ' class="failed"' : ''}><div>${shown}</div><figcaption><b>${escapeHtml(String(status))}</b> <a href="${escapeHtml(url)}" rel="noreferrer noopener">${escapeHtml(shorten(url))}</a><small><time>${escapeHtml(takenAt.slice(0, 19).replace('T', ' '))}</time>${others.join('')}</small></figcaption></figure>`;
}

const WORDS: Record<ShotRef['kind'], string> = {
  screenshot: 'picture',
  pdf: 'PDF',
  snapshot: 'picture',
  'snapshot-html': 'HTML as text',
};

function hasFailed({ failureCode }: SheetTile): boolean {
  return failureCode !== null;
}

/** Without its scheme, and with both ends where it is long. */
function shorten(url: string): string {
  const text = url.replace(/^https?:\/\//, '');
  return text.length > 90 ? `${text.slice(0, 55)}…${text.slice(-32)}` : text;
}

const STYLE = `
:root{color-scheme:light dark;--line:#8883;--soft:#888;--card:#8881}
*{box-sizing:border-box}body{margin:0;font:14px/1.4 system-ui,sans-serif}
header,footer{display:flex;gap:1rem;align-items:baseline;padding:1rem 1.25rem}header{position:sticky;top:0;background:Canvas;border-bottom:1px solid var(--line);z-index:1}
h1{font-size:1.1rem;margin:0}header span{color:var(--soft)}nav{margin-left:auto}
main{display:grid;grid-template-columns:repeat(auto-fill,minmax(240px,1fr));gap:1rem;padding:1.25rem}
figure{margin:0;border:1px solid var(--line);border-radius:8px;overflow:hidden;background:var(--card);content-visibility:auto;contain-intrinsic-size:240px 280px}
figure div{height:200px;overflow:hidden;border-bottom:1px solid var(--line);background:#fff;display:grid}
img{width:100%;height:200px;object-fit:cover;object-position:left top;display:block}.none{place-self:center;color:#777}
figcaption{padding:.5rem .65rem;overflow-wrap:anywhere}b{color:#1a7f4b}.failed b{color:#c0392b}.failed{border-color:#c0392b88}
small{display:flex;gap:.75rem;color:var(--soft);margin-top:.25rem}`.trim();
