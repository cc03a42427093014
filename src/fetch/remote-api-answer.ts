import { STATUS_CODES } from 'node:http';
import type { BatchApiSpec } from '../core/job-schema/remote-api.ts';
import { LIMITS } from '../core/limits.ts';
import type { FetchResult } from '../ports/fetcher.ts';

/** What a batch API says, which is as hostile as what a site says. */

/** A value inside JSON, by names and numbers with dots between; the whole of it for an empty path. */
export function valueAt(value: unknown, path: string): unknown {
  if (path === '') return value;
  let found = value;
  for (const name of path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return found;
}

export function textAt(value: unknown, path: string): string | null {
  const found = valueAt(value, path);
  return typeof found === 'string' || typeof found === 'number' ? String(found) : null;
}

/** A page that the API has fetched; null when it says nothing usable. */
export function pageAt(
  spec: BatchApiSpec,
  item: unknown,
  bodyBytesMax: number,
  cost: number,
): FetchResult | null {
  const status = Number(textAt(item, spec.status) ?? 200);
  const text = textAt(item, spec.page);
  if (text === null || !Number.isInteger(status) || status < 200 || status > 599) return null;
  const body = Buffer.from(text, spec.base64 ? 'base64' : 'utf8');
  if (body.length > bodyBytesMax)
    return {
      kind: 'failure',
      code: 'too-large',
      detail: 'the body is over the size limit',
      bytes: body.length,
    };
  const told = Number(textAt(item, spec.cost) ?? Number.NaN);
  return {
    kind: 'response',
    status,
    statusText: STATUS_CODES[status] ?? '',
    rawHeaders: headersAt(item, spec),
    wireBody: body,
    body,
    wireBytes: body.length,
    cost: Number.isFinite(told) && told >= 0 ? told : cost,
  };
}

/** Without those that speak of how the body was sent to the API. Text in JSON is UTF-8 by now, whatever it was before. */
function headersAt(item: unknown, spec: BatchApiSpec): string[] {
  const found = valueAt(item, spec.headers);
  if (typeof found !== 'object' || found === null) return [];
  const list: string[] = [];
  let bytes = 0;
  for (const [name, given] of Object.entries(found)) {
    if (!/^[\w-]{1,100}$/.test(name) || /^(content-(encoding|length)|transfer-encoding)$/i.test(name))
      continue;
    for (const value of Array.isArray(given) ? given : [given]) {
      let text = String(value).replace(/[^\t\x20-\x7e\x80-\xff]/g, ' ');
      if (!spec.base64 && name.toLowerCase() === 'content-type')
        text = `${text.split(';')[0]}; charset=utf-8`;
      bytes += name.length + text.length;
      if (bytes > LIMITS.headerBytesMax) return list;
      list.push(name, text);
    }
  }
  return list;
}
