import { LIMITS } from '../../core/limits.ts';
import type { RemoteFiles } from '../../ports/remote-files.ts';
import { type ColumnSpec, mapObject, taskOf } from '../rows/map-row.ts';
import { BrokenFileError, type FileReader, type RawRow } from '../rows/raw-row.ts';
import { openText, openTextAt, peek, refuseBinary } from './text-file.ts';

type ParseLine = (line: string) => RawRow['row'] | null;
/** Throws when a file cannot be what it should be. */
type CheckHead = (head: string) => void;

/** Bytes count after unpacking. `gzip` says that they cannot be jumped over. */
interface LinePosition {
  line: number;
  offset: number;
  gzip?: true;
}

const NEWLINE = 10;
const HEAD_BYTES = 1_024;

export function openTxtReader(files: RemoteFiles, spec: ColumnSpec): FileReader {
  return openLineReader(files, (line) => txtRow(line, spec.route));
}

export function openJsonlReader(files: RemoteFiles, spec: ColumnSpec): FileReader {
  return openLineReader(files, jsonlRow(spec), refuseArray);
}

/** One URL a line; empty lines and `#` comments are passed over. */
function txtRow(line: string, route: string | undefined): RawRow['row'] | null {
  const url = line.trim();
  return url === '' || url.startsWith('#') ? null : taskOf(url, {}, route);
}

/** Line by line, most of an array would be rejected and its last item taken. */
function refuseArray(head: string): void {
  if (/^[\uFEFF\s]*\[/.test(head))
    throw new BrokenFileError(
      'it is a JSON array, not JSON lines: write one object per line, without commas between lines',
    );
}

/** One JSON object, or string, a line; other properties travel as meta. */
function jsonlRow(spec: ColumnSpec): ParseLine {
  const map = mapObject(spec);
  return (line) => {
    if (line.trim() === '') return null;
    let value: unknown;
    try {
      value = parseExactly(line);
    } catch {
      return { reason: 'not valid JSON' };
    }
    if (typeof value === 'string') return taskOf(value, {}, spec.route);
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return { reason: 'neither an object nor a string' };
    return map(value as Record<string, unknown>);
  };
}

/** As JSON.parse, but whole numbers that a double would change stay as they are written, as text. */
function parseExactly(line: string): unknown {
  return /\d{16}/.test(line) ? JSON.parse(line, keepDigits) : JSON.parse(line);
}

function keepDigits(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && /^-?\d+$/.test(source) ? source : value;
}

/** `checkHead` refuses a file by its first line. */
function openLineReader(files: RemoteFiles, parse: ParseLine, checkHead?: CheckHead): FileReader {
  return {
    rows: (url, at) => lineRows(files, url, at as LinePosition | null, parse, checkHead),
    async check(url) {
      const text = await openText(files, url);
      try {
        const { head, all } = await peek(text.chunks, HEAD_BYTES);
        refuseBinary(head.subarray(0, HEAD_BYTES));
        await checked(all, checkHead);
      } finally {
        text.close();
      }
    },
    async close() {},
  };
}

/** The same chunks, after a check of the first of them. */
async function checked(chunks: AsyncIterable<Buffer>, checkHead?: CheckHead): Promise<AsyncIterable<Buffer>> {
  if (!checkHead) return chunks;
  const { head, all } = await peek(chunks, 1);
  checkHead(head.toString('utf8', 0, HEAD_BYTES));
  return all;
}

async function* lineRows(
  files: RemoteFiles,
  url: string,
  at: LinePosition | null,
  parse: ParseLine,
  checkHead?: CheckHead,
): AsyncIterable<RawRow> {
  const text = at && !at.gzip ? await openTextAt(files, url, at.offset) : await openText(files, url);
  let line = at?.line ?? 0;
  let offset = at?.offset ?? 0;
  let skip = at?.gzip ? at.offset : 0;
  try {
    const chunks = at === null ? await checked(text.chunks, checkHead) : text.chunks;
    for await (const { bytes, size } of splitLines(chunks)) {
      if (skip > 0) {
        skip -= size;
        continue;
      }
      line++;
      offset += size;
      const row = bytes
        ? parse(line === 1 ? bytes.toString('utf8').replace(/^\uFEFF/, '') : bytes.toString('utf8'))
        : { reason: `longer than ${LIMITS.sourceRowBytesMax} bytes` };
      const position: LinePosition = text.gzip ? { line, offset, gzip: true } : { line, offset };
      if (row) yield { place: `line ${line}`, at: position, row };
    }
  } finally {
    text.close();
  }
}

/** `bytes` without the line end; null when the line is too long. `size` counts everything. */
async function* splitLines(
  input: AsyncIterable<Buffer>,
): AsyncIterable<{ bytes: Buffer | null; size: number }> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  const take = (last: Buffer, lineEnd: number) => {
    const size = restBytes + last.length + lineEnd;
    const bytes =
      size > LIMITS.sourceRowBytesMax
        ? null
        : withoutReturn(rest.length === 0 ? last : Buffer.concat([...rest, last]));
    rest = [];
    restBytes = 0;
    return { bytes, size };
  };
  for await (const chunk of input) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield take(chunk.subarray(start, end), 1);
      start = end + 1;
    }
    const tail = chunk.subarray(start);
    if (restBytes <= LIMITS.sourceRowBytesMax) rest.push(tail);
    else rest = [];
    restBytes += tail.length;
  }
  if (restBytes > 0) yield take(Buffer.alloc(0), 0);
}

function withoutReturn(line: Buffer): Buffer {
  return line.at(-1) === 13 ? line.subarray(0, -1) : line;
}
