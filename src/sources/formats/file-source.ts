import { messageOf, SeineError } from '../../core/errors.ts';
import type { FileSourceSpec, SitemapSourceSpec } from '../../core/job-schema/job.ts';
import { shownName } from '../../core/job-schema/source-name.ts';
import { MissingFileError, type RemoteFile, type RemoteFiles } from '../../ports/remote-files.ts';
import type { Source, SourceRow } from '../../ports/source.ts';
import { byBytes } from '../files/by-bytes.ts';
import { BrokenFileError, type FileReader } from '../rows/raw-row.ts';
import { formatOf } from './file-format.ts';

/**
 * `at` and `skip`: within a file, and tasks already taken of the row after that; `done`: no more of this file.
 * `file` names one of several; a single one may be moved with its folder.
 */
interface Position {
  file?: string;
  at?: unknown;
  skip?: number;
  done?: true;
}

/** Finds the files that a name may stand for, when they are needed. */
export type FilesOf = (url: string) => Promise<RemoteFiles>;

/** `within` holds sitemaps that a sitemap in a file names. */
export type FilesSpec = FileSourceSpec & { within?: SitemapSourceSpec['within'] };

/** All files that fit a name, in the order of their names, each row with where to go on after it. */
export function fileSource(spec: FilesSpec, filesOf: FilesOf): Source {
  let sizes: RemoteFile[] | null = null;
  return {
    name: shownName(spec.file),
    priority: spec.priority,
    async *rows(from) {
      const files = await filesOf(spec.file);
      const reader = await openReader(spec, files);
      try {
        yield* rowsOfFiles(spec.file, files, reader, from);
      } finally {
        await reader.close();
      }
    },
    async shareRead(position) {
      sizes ??= await sizesOf(spec.file, await filesOf(spec.file)).catch(() => []);
      return shareOf(sizes, JSON.parse(position));
    },
  };
}

/** More files than this are not added up: a listing of an object store takes a while. */
const FILES_SUMMED_MAX = 1_000;

/** Empty where they are not known. */
async function sizesOf(pattern: string, files: RemoteFiles): Promise<RemoteFile[]> {
  const found: RemoteFile[] = [];
  for await (const file of files.list(pattern)) {
    if (file.bytes === null || found.length >= FILES_SUMMED_MAX) return [];
    found.push(file);
  }
  return found;
}

/** Inside of a compressed file or of one with row groups, nobody knows how far a row is. */
function shareOf(sizes: readonly RemoteFile[], { file, at, done }: Position): number | null {
  const total = sizes.reduce((sum, { bytes }) => sum + bytes!, 0);
  if (total === 0) return null;
  const current = file === undefined ? 0 : sizes.findIndex(({ url }) => url === file);
  if (current === -1) return null;
  const before = sizes.slice(0, current).reduce((sum, { bytes }) => sum + bytes!, 0);
  if (done) return (before + sizes[current]!.bytes!) / total;
  const { offset, gzip } = (at ?? {}) as { offset?: unknown; gzip?: true };
  if (typeof offset !== 'number' || gzip) return current > 0 ? before / total : null;
  return Math.min(1, (before + offset) / total);
}

/** Whether there is something to read, and whether the first of it is what the source says. */
export async function checkFileSource(spec: FilesSpec, filesOf: FilesOf): Promise<void> {
  const files = await filesOf(spec.file);
  const reader = await openReader(spec, files);
  try {
    for await (const { url } of files.list(spec.file)) {
      await reader.check(url).catch((error: unknown) => {
        if (error instanceof BrokenFileError)
          throw new SeineError(`${shownName(url)}: ${error.message}`, { cause: error });
        throw error;
      });
      return;
    }
  } finally {
    await reader.close();
  }
  throw nothingFits(spec.file);
}

function nothingFits(pattern: string): SeineError {
  return new SeineError(`no file matches ${pattern}`, {
    hint: '`*` matches any part of a name, `**` also matches folders',
  });
}

/** Each format is loaded by the jobs that read it. */
async function openReader(spec: FilesSpec, files: RemoteFiles): Promise<FileReader> {
  const format = formatOf(spec);
  if (format === 'csv') return (await import('./csv-source.ts')).openCsvReader(files, spec);
  if (format === 'sitemap') {
    const { within = 'site', route = null, priority } = spec;
    return (await import('./sitemap-source.ts')).openSitemapReader(files, { within, route, priority });
  }
  if (format === 'parquet')
    return (await import('../parquet/parquet-source.ts')).openParquetReader(files, spec);
  const lines = await import('./line-source.ts');
  if (format === 'jsonl') return lines.openJsonlReader(files, spec);
  return lines.openTxtReader(files, spec);
}

async function* rowsOfFiles(
  pattern: string,
  files: RemoteFiles,
  reader: FileReader,
  from: string | null,
): AsyncIterable<SourceRow> {
  const start = from === null ? null : (JSON.parse(from) as Position);
  let reached = start === null || start.done === true;
  let any = false;
  for await (const { url } of withLast(files.list(pattern))) {
    // None at all is a disk that is missing, not work that is done.
    if (url === null && !any) throw nothingFits(pattern);
    any = true;
    const order = start && url !== null ? byBytes(url, start.file ?? url) : 1;
    if (order < 0 || (order === 0 && start?.done)) continue;
    if (order > 0 && !reached) yield vanished(start?.file ?? pattern, pattern);
    reached = true;
    if (url !== null) yield* rowsOfFile(url, pattern, reader, order === 0 ? start : null);
  }
}

/** A last turn after the last file: the one that was being read may be gone from the end of the list. */
async function* withLast(list: AsyncIterable<RemoteFile>): AsyncIterable<{ url: string | null }> {
  yield* list;
  yield { url: null };
}

async function* rowsOfFile(
  url: string,
  pattern: string,
  reader: FileReader,
  start: Position | null,
): AsyncIterable<SourceRow> {
  const prefix = pattern.includes('*') ? `${shortName(url, pattern)}, ` : '';
  const file = fileOf(url, pattern);
  let before: unknown = start?.at ?? null;
  let skip = start?.skip ?? 0;
  let read: string | null = null;
  try {
    for await (const raw of reader.rows(url, before)) {
      const place = prefix + raw.place;
      const after = positionOf({ ...file, at: raw.at });
      if (!Array.isArray(raw.row)) yield { place, position: after, row: raw.row };
      else
        for (const [index, row] of raw.row.entries()) {
          if (index < skip) continue;
          const isLast = index === raw.row.length - 1;
          const position = isLast ? after : positionOf({ ...file, at: before, skip: index + 1 });
          yield { place, position, row };
        }
      before = raw.at;
      skip = 0;
      read = raw.place;
    }
  } catch (error) {
    if (!(error instanceof BrokenFileError || error instanceof MissingFileError)) throw error;
    yield rejectFile(url, pattern, messageOf(error), read);
  }
}

function vanished(url: string, pattern: string): SourceRow {
  return rejectFile(url, pattern, 'it was removed before it was read completely');
}

/** One entry for what is left of the file, after the last row that could be read; the next one is read. */
function rejectFile(url: string, pattern: string, reason: string, read: string | null = null): SourceRow {
  const file = pattern.includes('*') ? shortName(url, pattern) : null;
  const rest = read === null ? null : `after ${read}`;
  const place = file && rest ? `${file}, ${rest}` : (rest ?? file ?? 'whole file');
  return { place, position: positionOf({ ...fileOf(url, pattern), done: true }), row: { reason } };
}

function fileOf(url: string, pattern: string): { file?: string } {
  return pattern.includes('*') ? { file: url } : {};
}

function positionOf(position: Position): string {
  return JSON.stringify(position);
}

/** Without the folder that all of them are in. */
function shortName(url: string, pattern: string): string {
  const folder = pattern.slice(0, pattern.slice(0, pattern.indexOf('*')).lastIndexOf('/') + 1);
  return url.startsWith(folder) ? url.slice(folder.length) : url;
}
