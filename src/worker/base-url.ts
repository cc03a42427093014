import type { Page } from './page.ts';

/** What relative links of a page are meant from. */
export function baseUrlOf(page: Page): string {
  return resolveBase(page.attributeOf('base[href]', 'href'), page.url);
}

export function resolveBase(base: string | null, pageUrl: string): string {
  return base !== null && URL.canParse(base, pageUrl) ? new URL(base, pageUrl).href : pageUrl;
}
