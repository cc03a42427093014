import type { FailureCode } from '../core/failures.ts';
import type { ApiSpec } from '../core/job-schema-api.ts';
import type { FetchRequest, FetchResponse, FetchResult } from '../ports/fetcher.ts';

export function failure(code: FailureCode, detail: string, bytes = 0): FetchResult {
  return { kind: 'failure', code, detail, bytes };
}

/** Both are escaped: a URL with parameters is one parameter of the API's. */
export function fillTemplate(template: string, { url, key }: { url?: string; key: string | null }): string {
  const parts = { '{url}': url ?? '', '{key}': key ?? '' };
  return template.replace(/\{(?:url|key)\}/g, (name) =>
    encodeURIComponent(parts[name as keyof typeof parts]),
  );
}

export function headersFor(spec: ApiSpec, key: string | null): Record<string, string> {
  return Object.fromEntries(
    Object.entries(spec.headers).map(([name, value]) => [
      name.toLowerCase(),
      value.replaceAll('{key}', key ?? ''),
    ]),
  );
}

/** For a page that came whole: into the sink that the request has for it, if any. */
export async function intoSink(request: FetchRequest, response: FetchResponse): Promise<FetchResult> {
  const { status, rawHeaders, body } = response;
  try {
    const sink = status < 300 ? request.sinkFor?.({ status, rawHeaders }) : null;
    if (!sink) return response;
    await sink.write(body);
    return { ...response, wireBody: EMPTY, body: EMPTY };
  } catch {
    return failure('internal', 'The body could not be stored.', response.wireBytes);
  }
}

const EMPTY = Buffer.alloc(0);
