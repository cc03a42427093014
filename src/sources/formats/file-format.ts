import { extname } from 'node:path';
import { SeineError } from '../../core/errors.ts';
import type { FileSourceSpec } from '../../core/job-schema/job.ts';
import { pathOf } from '../../core/job-schema/source-name.ts';

export type FileFormat = NonNullable<FileSourceSpec['format']>;

const FORMATS: Record<string, FileFormat> = {
  '.txt': 'txt',
  '.list': 'txt',
  '.urls': 'txt',
  '.csv': 'csv',
  '.tsv': 'csv',
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.parquet': 'parquet',
  '.xml': 'sitemap',
  '.rss': 'sitemap',
  '.atom': 'sitemap',
};

export function isNamedGzip(name: string): boolean {
  return pathOf(name).toLowerCase().endsWith('.gz');
}

/** Lower case, with its dot, and without `.gz`. */
export function endingOf(name: string): string {
  const path = pathOf(name).toLowerCase();
  return extname(path.endsWith('.gz') ? path.slice(0, -3) : path);
}

/** What the source says, else what its name says. */
export function formatOf(spec: { file: string; format?: FileFormat | undefined }): FileFormat {
  const format = spec.format ?? FORMATS[endingOf(spec.file)];
  if (format) return format;
  throw new SeineError(`unknown format of ${spec.file}`, {
    hint: `use one of ${Object.keys(FORMATS).join(' ')} (all but .parquet also with .gz), or set the format`,
  });
}
