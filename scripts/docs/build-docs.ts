import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Marked, type Token, type Tokens } from 'marked';
import MiniSearch from 'minisearch';
import { escapeHtml } from '../../src/core/text/escape-html.ts';
import { readOptions } from '../read-options.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PARTS = join(import.meta.dirname, 'site');
const CODE = new Set(['.ts', '.yaml', '.json', '.sh', '.py', '.csv', '.js', '']);
export const SEARCH_OPTIONS = { fields: ['title', 'page', 'text'], storeFields: ['title', 'page', 'url'] };

interface Section {
  id: number;
  title: string;
  page: string;
  url: string;
  text: string;
}

/** The pages: everything that is Markdown at the root, in docs/ and in examples/. */
function markdownFiles(): string[] {
  return ['.', 'docs', 'examples'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: folder !== '.', encoding: 'utf8' })
      .map((name) => posix.join(folder, name))
      .filter((path) => path.endsWith('.md')),
  );
}

const outputOf = (path: string) =>
  path === 'README.md'
    ? 'index.html'
    : path.endsWith('.md')
      ? path.replace(/\.md$/, '.html')
      : `${path}.html`;

/** As GitHub makes it, so that links lead to the same place in both. */
function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replace(/\s/g, '-');
}

/** The text of tokens, without their marks. */
function plainText(tokens: readonly Token[] | undefined): string {
  return (tokens ?? [])
    .map((token) => {
      if (token.type === 'html') return ' ';
      if (token.type === 'table') {
        const { header, rows } = token as Tokens.Table;
        return [header, ...rows].map((row) => row.map((cell) => plainText(cell.tokens)).join(' ')).join('\n');
      }
      if (token.type === 'list')
        return (token as Tokens.List).items.map((item) => plainText(item.tokens)).join('\n');
      const inner = 'tokens' in token ? token.tokens : undefined;
      return inner ? plainText(inner) : 'text' in token ? String(token.text) : ' ';
    })
    .join(' ');
}

/** What the word behind the language of a block says to a reader. */
function captionOf(language: string, info: string): string {
  if (language !== 'sh') return info;
  if (info === 'other-terminal') return 'in another terminal';
  return info.startsWith('needs') && info !== 'needs npm' ? info : '';
}

class Site {
  readonly #out: string;
  readonly #sections: Section[] = [];
  /** Files that pages lead to, besides pages. */
  readonly #linked = new Set<string>();
  readonly #titles = new Map<string, string>();

  constructor(out: string) {
    this.#out = out;
  }

  build(): { pages: string[]; sections: readonly Section[] } {
    const files = markdownFiles();
    for (const path of files)
      this.#titles.set(path, /^# (.*)$/m.exec(this.#read(path))?.[1]?.replaceAll('`', '') ?? path);
    for (const path of files) this.#writePage(path);
    for (const path of [...this.#linked]) this.#writeLinked(path);
    this.#writeSearch();
    return { pages: files.map(outputOf), sections: this.#sections };
  }

  #read(path: string): string {
    return readFileSync(join(ROOT, path), 'utf8');
  }

  #write(path: string, text: string): void {
    mkdirSync(dirname(join(this.#out, path)), { recursive: true });
    writeFileSync(join(this.#out, path), text);
  }

  #writePage(path: string): void {
    const marked = new Marked({ gfm: true });
    const used = new Map<string, number>();
    const idOf = (text: string) => {
      const slug = slugOf(text);
      const count = used.get(slug) ?? 0;
      used.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    };
    const site = this;
    marked.use({
      renderer: {
        heading({ tokens, depth }) {
          const inner = this.parser.parseInline(tokens);
          const id = idOf(plainText(tokens).replace(/\s+/g, ' ').trim());
          return depth === 1
            ? `<h1 id="${id}">${inner}</h1>\n`
            : `<h${depth} id="${id}"><a href="#${id}">${inner}</a></h${depth}>\n`;
        },
        code({ text, lang = '' }) {
          const [language = '', ...rest] = lang.split(' ');
          const caption = captionOf(language, rest.join(' '));
          const shown = caption === '' ? '' : `<figcaption>${escapeHtml(caption)}</figcaption>`;
          return `<figure>${shown}<pre><code class="language-${escapeHtml(language)}">${escapeHtml(text)}</code></pre></figure>\n`;
        },
        table(token) {
          const row = (cells: Tokens.TableCell[], tag: string) =>
            `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`;
          const body = token.rows.map((cells) => row(cells, 'td')).join('\n');
          return `<div class="table"><table><thead>${row(token.header, 'th')}</thead><tbody>${body}</tbody></table></div>\n`;
        },
        link({ href, tokens }) {
          return `<a href="${escapeHtml(site.#linkFrom(path, href))}">${this.parser.parseInline(tokens)}</a>`;
        },
        image({ href, text }) {
          return `<img src="${escapeHtml(site.#linkFrom(path, href))}" alt="${escapeHtml(text)}">`;
        },
      },
    });
    const tokens = marked.lexer(this.#read(path));
    this.#addSections(path, tokens);
    this.#write(outputOf(path), this.#frame(path, marked.parser(tokens)));
  }

  /** Where a link of a page leads in the site. */
  #linkFrom(from: string, href: string): string {
    if (/^(https?:|mailto:|#)/.test(href)) return href;
    const [target = '', anchor] = href.split('#');
    const path = posix.join(dirname(from), target).replace(/\/$/, '');
    const isFolder = existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isDirectory();
    if (!this.#titles.has(path)) this.#linked.add(path);
    const to = isFolder
      ? posix.join(path, 'index.html')
      : this.#titles.has(path) || CODE.has(extname(path))
        ? outputOf(path)
        : path;
    return `${posix.relative(dirname(outputOf(from)), to)}${anchor === undefined ? '' : `#${anchor}`}`;
  }

  /** Files that are linked: lists of folders, code as a page, the rest as it is. */
  #writeLinked(path: string): void {
    const source = join(ROOT, path);
    if (!existsSync(source)) throw new Error(`a page leads to ${path}, which is not there`);
    if (statSync(source).isDirectory()) {
      const items = readdirSync(source)
        .sort()
        .map((name) => posix.join(path, name))
        .filter((each) => this.#titles.has(each))
        .map(
          (each) =>
            `<li><a href="${posix.relative(path, outputOf(each))}">${escapeHtml(this.#titles.get(each)!)}</a></li>`,
        );
      const at = posix.join(path, 'index');
      this.#write(
        `${at}.html`,
        this.#frame(`${at}.md`, `<h1>${escapeHtml(path)}</h1><ul>${items.join('')}</ul>`),
      );
    } else if (CODE.has(extname(path))) {
      const body = `<h1>${escapeHtml(path)}</h1><pre><code>${escapeHtml(this.#read(path))}</code></pre>`;
      this.#write(outputOf(path), this.#frame(path, body));
    } else {
      mkdirSync(dirname(join(this.#out, path)), { recursive: true });
      copyFileSync(source, join(this.#out, path));
    }
  }

  /** One for each heading, with the text below it. */
  #addSections(path: string, tokens: readonly Token[]): void {
    const page = this.#titles.get(path)!;
    const used = new Map<string, number>();
    let current: Section | null = null;
    for (const token of tokens) {
      if (token.type === 'heading') {
        const title = plainText(token.tokens).replace(/\s+/g, ' ').trim();
        const slug = slugOf(title);
        const count = used.get(slug) ?? 0;
        used.set(slug, count + 1);
        const url = `${outputOf(path)}#${slug}${count === 0 ? '' : `-${count}`}`;
        current = { id: this.#sections.length, title, page, url, text: '' };
        this.#sections.push(current);
      } else if (current !== null) current.text += ` ${plainText([token])}`;
    }
  }

  /** The pages as the README lists them, so that there is one order. */
  #navigation(from: string): string {
    const [, table = ''] = this.#read('README.md').split('## Read on');
    const rows = [...table.matchAll(/^\| (.+?) \| (.+?) \|$/gm)].filter(([, first]) => first !== 'to');
    const link = (target: string, text: string) => {
      const path = posix.normalize(target).replace(/\/$/, '');
      const current = path === from ? ' aria-current="page"' : '';
      return `<li><a href="${escapeHtml(this.#linkFrom(from, posix.relative(dirname(from), path)))}"${current}>${escapeHtml(text)}</a></li>`;
    };
    const groups = rows.map(([, title, links]) => {
      const items = [...links!.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, text, target]) =>
        link(target!, text!),
      );
      return `<b>${escapeHtml(title!)}</b><ul>${items.join('')}</ul>`;
    });
    return `<details><summary>Pages</summary>${groups.join('\n')}</details>`;
  }

  #frame(path: string, body: string): string {
    const root = posix.relative(dirname(outputOf(path)), '.');
    const up = root === '' ? '' : `${root}/`;
    const title = this.#titles.get(path) ?? path;
    return `<!doctype html>
<html lang="en" data-root="${up}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Seine</title>
<link rel="stylesheet" href="${up}site.css">
</head>
<body>
<header><a href="${up}index.html">Seine</a>
<div class="search"><input type="search" placeholder="Search (press /)" aria-label="Search the documentation"><ol></ol></div></header>
<div class="columns">
<nav aria-label="Pages">${this.#navigation(path)}</nav>
<main>
${body}
</main>
</div>
<script src="${up}minisearch.js"></script>
<script src="${up}search-index.js"></script>
<script src="${up}search.js"></script>
</body>
</html>
`;
  }

  #writeSearch(): void {
    const index = new MiniSearch<Section>(SEARCH_OPTIONS);
    index.addAll(this.#sections);
    const json = JSON.stringify(JSON.stringify(index));
    this.#write(
      'search-index.js',
      `window.SEARCH_OPTIONS = ${JSON.stringify(SEARCH_OPTIONS)};\nwindow.SEARCH_INDEX = ${json};\n`,
    );
    const library = createRequire(import.meta.url).resolve('minisearch');
    copyFileSync(join(dirname(library), '../umd/index.js'), join(this.#out, 'minisearch.js'));
    for (const name of ['site.css', 'search.js']) copyFileSync(join(PARTS, name), join(this.#out, name));
  }
}

/** Writes the site into an empty folder. */
export function buildDocs(out: string): ReturnType<Site['build']> {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  return new Site(out).build();
}

if (import.meta.main) {
  readOptions({
    start: 'npm run docs --',
    about:
      'The documentation as a static site with search, in site/. It works from file:// and needs no network.',
  });
  const out = join(ROOT, 'site');
  const { pages, sections } = buildDocs(out);
  console.log(
    `${pages.length} pages, ${sections.length} sections to search: ${relative(process.cwd(), out)}/index.html`,
  );
}
