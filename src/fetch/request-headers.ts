import { ACCEPTED_CODINGS } from './content-coding.ts';

/** A flat list is what undici walks fastest. */
export function headerList(headers: Record<string, string>): string[] {
  const list: string[] = [];
  let hasCodings = false;
  for (const name in headers) {
    list.push(name, headers[name]!);
    if (name.length === 15 && name.toLowerCase() === 'accept-encoding') hasCodings = true;
  }
  if (!hasCodings) list.push('accept-encoding', ACCEPTED_CODINGS);
  return list;
}
