import { createReadStream, existsSync, statSync } from 'node:fs';
import { extname } from 'node:path';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { SeineError } from '../core/errors.ts';
import type { SourceSpec } from '../core/job.ts';
import type { Source } from '../ports/source.ts';
import { csvRows } from './csv-source.ts';
import { jsonlRow, lineRows, txtRow } from './line-source.ts';

export type FileFormat = 'txt' | 'csv' | 'jsonl';

const FORMATS: Record<string, FileFormat> = {
  '.txt': 'txt',
  '.list': 'txt',
  '.urls': 'txt',
  '.csv': 'csv',
  '.tsv': 'csv',
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
};

/** A URL, or a file of URLs. Throws a SeineError when the file cannot be read. */
export function openSource(spec: SourceSpec): Source {
  if (typeof spec === 'string') {
    if (/^https?:\/\//i.test(spec)) return urlSource(spec);
    return openFile({ file: spec, urlColumn: 'url', priority: 0 });
  }
  return openFile(spec);
}

function urlSource(url: string): Source {
  return {
    name: url,
    priority: 0,
    async *rows(from) {
      if (from === null) yield { place: 'the URL', position: '1', row: { url, meta: null } };
    },
  };
}

function openFile(spec: Exclude<SourceSpec, string>): Source {
  const { file } = spec;
  if (!existsSync(file))
    throw new SeineError(`there is no file ${file}`, {
      hint: 'give a URL (https://…), a file of URLs, or a job file',
    });
  if (!statSync(file).isFile()) throw new SeineError(`${file} is not a file`);
  const gzip = file.endsWith('.gz');
  const extension = extname(gzip ? file.slice(0, -3) : file).toLowerCase();
  const format = spec.format ?? FORMATS[extension];
  if (!format) {
    throw new SeineError(`the format of ${file} is not known by its name`, {
      hint: `use one of ${Object.keys(FORMATS).join(' ')} (each also .gz), or set format`,
    });
  }
  const open = (offset: number): Readable => {
    if (!gzip) return createReadStream(file, { start: offset });
    const input = createReadStream(file);
    const output = createGunzip();
    input.on('error', (error) => output.destroy(error));
    return input.pipe(output).on('close', () => input.destroy());
  };
  // A gzip file cannot be entered in the middle: rows before the position are read and passed over.
  const seekable = !gzip;
  if (format === 'csv') {
    return {
      name: file,
      priority: spec.priority,
      rows: (from) =>
        csvRows(open, from, {
          seekable,
          urlColumn: spec.urlColumn,
          delimiter: extension === '.tsv' ? '\t' : ',',
        }),
    };
  }
  const parse = format === 'jsonl' ? jsonlRow(spec.urlColumn) : txtRow;
  return { name: file, priority: spec.priority, rows: (from) => lineRows(open, from, { seekable, parse }) };
}
