import { existsSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, SeineError } from '../core/errors.ts';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../core/file-modes.ts';
import type { QuerySourceSpec } from '../core/job-schema/job.ts';
import { LIMITS } from '../core/limits.ts';
import type { Source } from '../ports/source.ts';
import { openLocalFiles } from './files/local-files.ts';
import { fileSource } from './formats/file-source.ts';

export type RunQuery = (
  sql: string,
  options?: { signal?: AbortSignal },
) => AsyncIterable<Record<string, unknown>>;

/** Where the rows of a query are kept for one pass of a job. */
export interface Spool {
  dir: string;
  jobId: number;
  pass: number;
  /** Index of the source in the job. */
  source: number;
}

const WRITE_BYTES = 256 * 1024;

/** The rows of a query as they were when it was first asked: the tasks made from them would change them. */
export function querySource(spec: QuerySourceSpec, query: RunQuery, spool: Spool): Source {
  const path = join(spool.dir, `query-${spool.jobId}-${spool.pass}-${spool.source}.jsonl`);
  const { route, priority } = spec;
  return {
    name: `query ${spool.source + 1}`,
    priority,
    async *rows(from, { signal } = {}) {
      const stoppable: RunQuery = (sql) => query(sql, { signal });
      if (!existsSync(path)) await spoolRows(spec.query, stoppable, path, spool, signal);
      const files = openLocalFiles();
      yield* fileSource({ file: path, urlColumn: 'url', route, priority }, async () => files).rows(from);
    },
  };
}

/** Asks for one row: mistakes show before a job is made of them. */
export async function checkQuery(spec: QuerySourceSpec, query: RunQuery): Promise<void> {
  const first = `SELECT * FROM (${spec.query.replace(/;\s*$/, '')}\n) AS asked LIMIT 1`;
  for await (const row of asked(first, query)) {
    if (typeof row.url !== 'string')
      throw new SeineError(`the query has no text in a column 'url' among: ${Object.keys(row).join(', ')}`, {
        hint: 'name it: SELECT … AS url',
      });
    return;
  }
}

/** Whole or not at all: what a crash leaves behind is written anew. */
async function spoolRows(
  sql: string,
  query: RunQuery,
  path: string,
  spool: Spool,
  signal: AbortSignal | undefined,
): Promise<void> {
  await mkdir(spool.dir, { recursive: true, mode: PRIVATE_FOLDER });
  await removeEarlier(spool);
  const temporary = `${path}.part`;
  const file = await open(temporary, 'w', PRIVATE_FILE);
  try {
    let text = '';
    let count = 0;
    for await (const row of asked(sql, query, signal)) {
      if (++count > LIMITS.queryRowsMax)
        throw new SeineError(`the query has more than ${LIMITS.queryRowsMax} rows`);
      text += `${JSON.stringify(row, plainValue)}\n`;
      if (text.length < WRITE_BYTES) continue;
      await file.write(text);
      text = '';
    }
    await file.write(text);
    await file.sync();
  } catch (error) {
    // It may have filled the disk.
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const folder = await open(spool.dir, 'r');
  await folder.sync().finally(() => folder.close());
}

async function* asked(
  sql: string,
  query: RunQuery,
  signal?: AbortSignal,
): AsyncIterable<Record<string, unknown>> {
  try {
    for await (const row of query(sql)) {
      signal?.throwIfAborted();
      yield row;
    }
  } catch (error) {
    if (error instanceof SeineError || signal?.aborted) throw error;
    throw new SeineError(`the query failed: ${messageOf(error)}`, {
      hint: 'use a read-only query on the views seine_tasks and seine_records',
      cause: error,
    });
  }
}

/** Passes that are over read their rows no more. */
async function removeEarlier(spool: Spool): Promise<void> {
  for (const name of await readdir(spool.dir)) {
    const [, jobId, pass] = /^query-(\d+)-(\d+)-\d+\.jsonl/.exec(name) ?? [];
    if (Number(jobId) === spool.jobId && Number(pass) < spool.pass)
      await rm(join(spool.dir, name), { force: true });
  }
}

function plainValue(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value.toString();
  }
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}
