import { isHtml } from '../../../core/media/media-type.ts';
import type { Blobs } from '../../../ports/blobs.ts';
import type { NumberedTask } from '../../../ports/store.ts';
import { mainContent, toMarkdown } from '../../../worker/markdown/markdown.ts';
import type { Page } from '../../../worker/page/page.ts';
import { formatOf, storedPage } from '../scrape/results.ts';
import { readStoredBlob } from '../stored-blob.ts';
import type { DocumentPart } from './options.ts';

export type FirecrawlDocument = Record<string, unknown>;

/** A page as Firecrawl's clients know it. */
export async function documentOf(
  blobs: Blobs,
  task: NumberedTask,
  parts: readonly DocumentPart[],
): Promise<FirecrawlDocument> {
  const page = await storedPage(blobs, task);
  const document: FirecrawlDocument = { metadata: metadataOf(task, page) };
  for (const part of parts) {
    if (part === 'screenshot') document.screenshot = await screenshotOf(blobs, task);
    else if (part !== 'wholePage' && page) document[part] = partOf(page, part, parts.includes('wholePage'));
  }
  return document;
}

function partOf(page: Page, part: Exclude<DocumentPart, 'screenshot' | 'wholePage'>, isWhole: boolean) {
  if (part === 'images') return imagesOf(page);
  if (part === 'links') return formatOf(page, 'links');
  if (part !== 'markdown') return page.text;
  return isWhole && isHtml(page.contentType)
    ? toMarkdown(page.document, page.url)
    : mainContent(page).markdown;
}

function imagesOf(page: Page): string[] {
  const images = page.all('img[src]').flatMap(({ attribs }) => URL.parse(attribs.src!, page.url)?.href ?? []);
  return [...new Set(images)];
}

/** In the answer itself: Firecrawl gives it a public address, and here it stays private. */
async function screenshotOf(blobs: Blobs, { shots }: NumberedTask): Promise<string | undefined> {
  const shot = shots.find(({ kind }) => kind === 'screenshot');
  const bytes = shot && (await readStoredBlob(blobs, shot.key));
  return bytes ? `data:${shot.type};base64,${bytes.toString('base64')}` : undefined;
}

function metadataOf(task: NumberedTask, page: Page | null): Record<string, unknown> {
  const isPage = page !== null && isHtml(page.contentType);
  const found = isPage
    ? {
        title: page.textOf('title'),
        description: page.attributeOf('meta[name="description" i]', 'content'),
        language: page.attributeOf('html', 'lang'),
      }
    : {};
  const known = Object.entries(found).filter(([, value]) => value !== null);
  return {
    ...Object.fromEntries(known),
    sourceURL: task.url,
    url: task.redirectTo ?? task.url,
    statusCode: task.httpStatus,
    contentType: task.contentType,
  };
}
