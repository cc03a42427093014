import { readdirSync, readFileSync } from 'node:fs';
import { Parser } from 'htmlparser2';
import { marked } from 'marked';

/**
 * Pages with what is content in them marked, written for this in the shapes of real ones. The extraction was tuned on one
 * half; the other was frozen before, and only says how well it works. In the files, `<!--[-->` and `<!--]-->` stand around
 * content, `<!--(-->` and `<!--)-->` around what is none within it, and a comment in the head has the title. The title
 * itself, the author's line and the date are no content: they are fields of their own.
 */
export interface ContentPage {
  name: string;
  /** The first word of its file name. */
  kind: string;
  /** Without the marks. */
  html: string;
  title: string;
  expected: string;
}

export type Half = 'tuning' | 'frozen';

const FOLDER = new URL('../../fixtures/content/', import.meta.url);

export function contentPages(half: Half): ContentPage[] {
  const folder = new URL(`${half}/`, FOLDER);
  return readdirSync(folder)
    .toSorted()
    .map((file) => {
      const marked = readFileSync(new URL(file, folder), 'utf8');
      return {
        name: file.replace('.html', ''),
        kind: file.split('-')[0]!,
        html: marked.replace(/<!--(?:[[\]()]|title: .*?)-->/g, ''),
        title: /<!--title: (.*?)-->/.exec(marked)?.[1]?.replaceAll('&amp;', '&') ?? '',
        expected: textOf(marked, true),
      };
    });
}

/** Tags that stand between two words of one line. */
const WITHIN_LINES = new Set('a b i em strong code span font small mjx-container'.split(' '));

/** Text of a page, or of its marked parts only. */
function textOf(html: string, onlyMarked: boolean): string {
  const states = [!onlyMarked];
  const pieces: string[] = [];
  let silent = 0;
  const between = (name: string) => {
    if (!WITHIN_LINES.has(name)) pieces.push(' ');
  };
  const parser = new Parser({
    oncomment: (data) => {
      if (data === '[') states.push(true);
      else if (data === '(') states.push(false);
      else if (data === ']' || data === ')') states.pop();
    },
    onopentagname: (name) => {
      if (name === 'script' || name === 'style' || name === 'title') silent++;
      between(name);
    },
    onclosetag: (name) => {
      if (name === 'script' || name === 'style' || name === 'title') silent--;
      between(name);
    },
    ontext: (data) => {
      if (silent === 0 && states.at(-1)) pieces.push(data);
    },
  });
  parser.end(html);
  return pieces.join('');
}

/** Words of Markdown as a reader sees them; its addresses and marks are none. */
export function textOfMarkdown(markdown: string): string {
  return textOf(marked.parse(markdown, { async: false }), false);
}

/** Words; in scripts without spaces, characters. */
function wordsOf(text: string): string[] {
  return (
    text
      .toLowerCase()
      .match(
        /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]|(?:(?![\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}])[\p{L}\p{N}\p{M}])+/gu,
      ) ?? []
  );
}

const SHINGLE_WORDS = 4;

/** How often each run of four words occurs. */
function shinglesOf(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (let at = 0; at + SHINGLE_WORDS <= words.length; at++) {
    const shingle = words.slice(at, at + SHINGLE_WORDS).join(' ');
    counts.set(shingle, (counts.get(shingle) ?? 0) + 1);
  }
  return counts;
}

export interface Rates {
  precision: number;
  recall: number;
  f1: number;
}

/** What of the found text is content, and what of the content was found. A title at the top is not counted. */
export function rateText(page: Pick<ContentPage, 'title' | 'expected'>, found: string): Rates {
  const title = wordsOf(page.title);
  let words = wordsOf(found);
  if (title.length > 0 && title.every((word, at) => words[at] === word)) words = words.slice(title.length);
  const expected = shinglesOf(wordsOf(page.expected));
  const given = shinglesOf(words);
  let common = 0;
  for (const [shingle, count] of given) common += Math.min(count, expected.get(shingle) ?? 0);
  const sum = (counts: Map<string, number>) => [...counts.values()].reduce((all, count) => all + count, 0);
  return withF1(common / Math.max(1, sum(given)), common / Math.max(1, sum(expected)));
}

/** Of several pages: the means, each page counting the same. */
export function meanOf(rates: readonly Rates[]): Rates {
  const mean = (pick: (one: Rates) => number) =>
    rates.reduce((all, one) => all + pick(one), 0) / Math.max(1, rates.length);
  return withF1(
    mean(({ precision }) => precision),
    mean(({ recall }) => recall),
  );
}

function withF1(precision: number, recall: number): Rates {
  return {
    precision,
    recall,
    f1: precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall),
  };
}
