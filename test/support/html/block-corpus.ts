import { readFileSync } from 'node:fs';
import type { Answer } from '../../../src/core/blocking/block-detection.ts';

/**
 * Pages of defences and ordinary pages, written for this in the shapes of real ones, in several languages. Detection was
 * tuned on one half; the other was frozen before, and only says how well it works.
 */
interface CorpusPage {
  half: 'tuning' | 'frozen';
  kind: 'block' | 'ordinary';
  name: string;
  status: number;
  url: string;
  /** The whole page, or its parts. */
  raw?: string;
  title?: string;
  body?: string;
  lang?: string;
  head?: string;
  /** Bytes of styles before the body. */
  pad?: number;
}

const PAGES: CorpusPage[] = JSON.parse(
  readFileSync(new URL('../../fixtures/blocking/corpus.json', import.meta.url), 'utf8'),
);

export function corpusOf(half: CorpusPage['half']): { page: CorpusPage; answer: Answer & { url: string } }[] {
  return PAGES.filter((page) => page.half === half).map((page) => ({
    page,
    answer: {
      status: page.status,
      url: page.url,
      rawHeaders: ['Content-Type', 'text/html; charset=utf-8'],
      body: Buffer.from(page.raw ?? htmlOf(page)),
      isHtml: true,
    },
  }));
}

function htmlOf({ title = '', body = '', lang = 'en', head = '', pad = 0 }: CorpusPage): string {
  const styles =
    pad === 0 ? '' : `<style>${'.box{margin:0 auto;padding:4px}'.repeat(Math.ceil(pad / 31))}</style>`;
  return `<!doctype html><html lang="${lang}"><head><meta charset="utf-8"><title>${title}</title>${head}${styles}</head><body>${body}</body></html>`;
}

interface Rates {
  blocks: number;
  ordinary: number;
  precision: number;
  recall: number;
  missed: string[];
  falseAlarms: string[];
}

/** How well a judgement tells the two kinds of one half apart. */
export function ratesOf(
  half: CorpusPage['half'],
  isBlock: (answer: Answer & { url: string }) => boolean,
): Rates {
  const judged = corpusOf(half).map(({ page, answer }) => ({ page, found: isBlock(answer) }));
  const of = (kind: CorpusPage['kind'], found: boolean) =>
    judged.filter((each) => each.page.kind === kind && each.found === found).map(({ page }) => page.name);
  const hits = of('block', true).length;
  const missed = of('block', false);
  const falseAlarms = of('ordinary', true);
  return {
    blocks: hits + missed.length,
    ordinary: falseAlarms.length + of('ordinary', false).length,
    precision: hits / Math.max(1, hits + falseAlarms.length),
    recall: hits / Math.max(1, hits + missed.length),
    missed,
    falseAlarms,
  };
}
