import type { FieldInput, RouteSpec } from '../../../src/core/job-schema/job.ts';
import { jobSchema } from '../../../src/core/job-schema/job-schema.ts';
import type { ReadResult } from '../../../src/worker/job/compiled-job.ts';
import type { RouteCode } from '../../../src/worker/job/route-code.ts';
import { Page, type PageInput } from '../../../src/worker/page/page.ts';
import { compileFields, type Extractor } from '../../../src/worker/records/extract.ts';
import { compileReader } from '../../../src/worker/records/read-records.ts';

/** Pages without a server, and routes as a job file would have them. */

export function inputOf(html: string, change: Partial<PageInput> = {}): PageInput {
  return {
    url: 'https://shop.example/1',
    status: 200,
    contentType: 'text/html',
    contentTypeHeader: 'text/html; charset=utf-8',
    headers: [],
    body: Buffer.from(html),
    route: null,
    meta: null,
    ...change,
  };
}

export const pageOf = (html: string, change: Partial<PageInput> = {}) => new Page(inputOf(html, change));

/** With every default filled in. */
export function routeOf(route: object): RouteSpec {
  return jobSchema.parse({ sources: 'https://shop.example/', routes: [{ name: 'product', ...route }] })
    .routes[0]!;
}

export function fieldsOf(select: Record<string, FieldInput>): Promise<Extractor> {
  const route = routeOf({ select });
  return compileFields(route.select!, { route: route.name });
}

/** What one field is on a page. */
export async function valueOn(html: string, field: FieldInput, change?: Partial<PageInput>) {
  const extract = await fieldsOf({ it: field });
  return extract(pageOf(html, change))?.it;
}

export async function readWith(route: object, code: RouteCode, page: Page): Promise<ReadResult> {
  const read = await compileReader(routeOf(route), code);
  if (!read) throw new Error('the route reads nothing');
  return read(page);
}
