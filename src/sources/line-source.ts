import type { Readable } from 'node:stream';
import type { Meta } from '../core/model.ts';
import type { SourceRow } from '../ports/source.ts';

type ParsedRow = SourceRow['row'] | null;

/** Longer lines are not URLs; they are passed over without being held in memory. */
const LINE_BYTES_MAX = 1024 * 1024;
const NEWLINE = 10;

/** One URL a line; empty lines and `#` comments are passed over. */
export function txtRow(line: string): ParsedRow {
  const url = line.trim();
  return url === '' || url.startsWith('#') ? null : { url, meta: null };
}

/** One JSON object, or string, a line; other properties travel as meta. */
export function jsonlRow(urlColumn: string): (line: string) => ParsedRow {
  return (line) => {
    if (line.trim() === '') return null;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      return { reason: 'not valid JSON' };
    }
    if (typeof value === 'string') return { url: value, meta: null };
    if (typeof value !== 'object' || value === null) return { reason: 'neither an object nor a string' };
    const { [urlColumn]: url, ...meta } = value as Meta;
    if (typeof url !== 'string') return { reason: `no text in property '${urlColumn}'` };
    return { url, meta: Object.keys(meta).length > 0 ? meta : null };
  };
}

/** Lines with the byte offset after each, so that reading can go on from there. */
export async function* lineRows(
  open: (offset: number) => Readable,
  from: string | null,
  options: { seekable: boolean; parse: (line: string) => ParsedRow },
): AsyncIterable<SourceRow> {
  const start =
    from === null ? { line: 0, offset: 0 } : (JSON.parse(from) as { line: number; offset: number });
  let line = start.line;
  let skip = options.seekable ? 0 : start.offset;
  let offset = start.offset;
  for await (const { bytes, size } of splitLines(open(options.seekable ? start.offset : 0))) {
    if (skip > 0) {
      skip -= size;
      continue;
    }
    line++;
    offset += size;
    const text = bytes?.toString('utf8');
    const row =
      text === undefined
        ? { reason: `longer than ${LINE_BYTES_MAX} bytes` }
        : options.parse(line === 1 ? text.replace(/^\uFEFF/, '') : text);
    if (row) yield { place: `line ${line}`, position: JSON.stringify({ line, offset }), row };
  }
}

/** `bytes` without the line end; null when the line is too long. `size` counts everything. */
async function* splitLines(input: Readable): AsyncIterable<{ bytes: Buffer | null; size: number }> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  const take = (last: Buffer, lineEnd: number) => {
    const size = restBytes + last.length + lineEnd;
    const bytes =
      size > LINE_BYTES_MAX ? null : withoutReturn(rest.length === 0 ? last : Buffer.concat([...rest, last]));
    rest = [];
    restBytes = 0;
    return { bytes, size };
  };
  for await (const chunk of input as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield take(chunk.subarray(start, end), 1);
      start = end + 1;
    }
    const tail = chunk.subarray(start);
    if (restBytes <= LINE_BYTES_MAX) rest.push(tail);
    restBytes += tail.length;
  }
  if (restBytes > 0) yield take(Buffer.alloc(0), 0);
}

function withoutReturn(line: Buffer): Buffer {
  return line.at(-1) === 13 ? line.subarray(0, -1) : line;
}
