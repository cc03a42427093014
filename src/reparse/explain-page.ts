import { isHtml, sniffMediaType } from '../core/media/media-type.ts';
import { type CompiledJob, routeOf } from '../worker/job/compiled-job.ts';
import { type ExplainedLink, explainLinks } from '../worker/links/explain-links.ts';
import { headerOf, Page } from '../worker/page/page.ts';
import { explainFields, type FieldMatch } from '../worker/records/explain-fields.ts';
import type { StoredResponse } from '../worker/storage/read-page.ts';

/** What a job sees in one page. */
export interface PageExplanation {
  contentType: string | null;
  route: string | null;
  selectors: FieldMatch[];
  links: ExplainedLink[];
}

export function explainPage(
  { url, status, headers, body }: StoredResponse,
  job: CompiledJob,
): PageExplanation {
  const contentTypeHeader = headerOf(headers, 'content-type');
  const contentType = sniffMediaType(body, contentTypeHeader);
  const route = routeOf(job, url, null);
  const about = { url, status, headers, body, meta: null, contentType, contentTypeHeader };
  const page = new Page({ ...about, route: route?.name ?? null });
  const { select } = job.spec.routes.find(({ name }) => name === route?.name) ?? {};
  const isPage = isHtml(contentType);
  return {
    contentType,
    route: route?.name ?? null,
    selectors: isPage && select ? explainFields(page, select) : [],
    links: isPage ? explainLinks(page, job, { route, depth: 0 }) : [],
  };
}
