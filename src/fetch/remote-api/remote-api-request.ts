import type { ApiSpec } from '../../core/job-schema/remote-api.ts';
import type { FetchRequest, FetchResponse, FetchResult } from '../../ports/fetcher.ts';
import { failure } from '../network/check-request.ts';

export const PRIVATE_API = 'the API has a private or reserved address, which this worker refuses';

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

interface BodyParts {
  urls: string[];
  key: string | null;
  /** Without one, the fields that would have it are left out. */
  callback: string | null;
}

export function fillBody(value: unknown, parts: BodyParts): unknown {
  const { urls, key, callback } = parts;
  if (value === '{urls}') return urls;
  if (typeof value === 'string')
    return value.replaceAll('{key}', key ?? '').replaceAll('{callback}', callback ?? '');
  if (typeof value !== 'object' || value === null) return value;
  const isKept = (item: unknown) => callback !== null || !wantsCallback(item);
  if (Array.isArray(value)) return value.filter(isKept).map((item) => fillBody(item, parts));
  const fields = Object.entries(value).filter(([, item]) => isKept(item));
  return Object.fromEntries(fields.map(([name, item]) => [name, fillBody(item, parts)]));
}

export function wantsCallback(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('{callback}');
  return typeof value === 'object' && value !== null && Object.values(value).some(wantsCallback);
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
    return failure('internal', 'the body could not be stored', response.wireBytes);
  }
}

const EMPTY = Buffer.alloc(0);
