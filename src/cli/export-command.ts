import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { requireJob } from '../coordinator/jobs.ts';
import { type ExitName, messageOf, SeineError } from '../core/errors.ts';
import type { JobSpec } from '../core/job.ts';
import type { RecordRow } from '../core/model.ts';
import type { Views } from '../ports/store.ts';
import { type Command, withFolder } from './context.ts';
import { csvHeader, csvLine } from './csv.ts';

const WHATS = {
  tasks: (views: Views, jobId: number) => views.tasks(jobId),
  records: (views: Views, jobId: number) => views.records(jobId),
  attempts: (views: Views, jobId: number) => views.attempts(jobId),
} as const;

/** Streams rows; memory stays flat whatever their number. */
export const exportCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const { what = 'records', format = 'jsonl', output } = context.parsed.values;
    const read = WHATS[what as keyof typeof WHATS];
    if (!read) throw new SeineError(`--what is one of ${Object.keys(WHATS).join(', ')}, not '${what}'`);
    if (format !== 'jsonl' && format !== 'csv')
      throw new SeineError(`--format is jsonl or csv, not '${format}'`);
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    const stored = read(folder.store.views, job.id) as AsyncIterable<object>;
    const flat = what === 'records' && format === 'csv';
    const rows = flat ? flatRecords(stored as AsyncIterable<RecordRow>, fieldsOf(job.spec)) : stored;
    const sink: Writable = output === undefined ? context.stdout : createWriteStream(output);
    try {
      await writeRows(rows, format, sink);
      if (output !== undefined) {
        sink.end();
        await finished(sink);
      }
    } catch (error) {
      if (output === undefined) throw error;
      throw new SeineError(`cannot write ${output}: ${messageOf(error)}`, { cause: error });
    }
    return 'success';
  });

/** Fields that the selectors of a job name, so that every row of a table has them. */
function fieldsOf(spec: JobSpec): string[] {
  return [...new Set(spec.routes.flatMap((route) => Object.keys(route.select ?? {})))];
}

/** A table wants a column for each field; those of handlers are known from the first record. */
async function* flatRecords(rows: AsyncIterable<RecordRow>, known: string[]): AsyncIterable<object> {
  let fields: string[] | null = null;
  for await (const { url, key, route, data, updatedAt } of rows) {
    fields ??= [...new Set([...known, ...Object.keys(data)])];
    const row: Record<string, unknown> = { url };
    for (const field of fields) row[field in row ? `data.${field}` : field] = data[field] ?? null;
    yield { ...row, key, route, updatedAt };
  }
}

async function writeRows(
  rows: AsyncIterable<object>,
  format: 'jsonl' | 'csv',
  sink: Writable,
): Promise<void> {
  let failure: unknown = null;
  sink.on('error', (error) => {
    failure = error;
  });
  let columns: string[] | null = null;
  for await (const row of rows) {
    if (failure) throw failure;
    if (format === 'csv' && !columns) {
      columns = Object.keys(row);
      sink.write(csvHeader(columns));
    }
    const text = format === 'csv' ? csvLine(columns!, row) : `${JSON.stringify(row)}\n`;
    if (!sink.write(text)) await Promise.race([once(sink, 'drain'), once(sink, 'close')]);
  }
  if (failure) throw failure;
}
