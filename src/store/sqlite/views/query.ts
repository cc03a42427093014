import { type ChildProcess, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { SeineError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { QueryOptions } from '../../../ports/views.ts';
import { QUERY_MS, tooSlow } from '../../shared/query-time.ts';
import type { QueryAnswer, QueryQuestion } from './query-messages.ts';
import { isOneSelect } from './query-tokens.ts';

type Row = Record<string, unknown>;

/**
 * Runs a query of a person, who may read the views and nothing else, and not for ever: in a process of its own, which is
 * killed when the time is over.
 */
export async function* runQuery(path: string, sql: string, options: QueryOptions = {}): AsyncIterable<Row> {
  if (!isOneSelect(sql))
    throw new SeineError('a query must be one SELECT statement', {
      hint: "for example: SELECT url FROM seine_records WHERE job = 'shop'",
    });
  const { signal, timeMs = QUERY_MS } = options;
  signal?.throwIfAborted();
  const query = new QueryProcess();
  const stop = () => query.kill();
  signal?.addEventListener('abort', stop, { once: true });
  const timer = setTimeout(() => query.kill(tooSlow(timeMs)), timeMs);
  try {
    await query.ask({ kind: 'run', path, sql, rowsMax: LIMITS.queryRowsMax });
    clearTimeout(timer);
    while (true) {
      const answer = await query.ask({ kind: 'next' });
      const rows = answer.kind === 'rows' ? answer.rows : [];
      if (rows.length === 0) return;
      yield* rows;
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
    query.kill();
  }
}

class QueryProcess {
  readonly #child: ChildProcess;
  /** Of the question that is asked. */
  #waiting: PromiseWithResolvers<QueryAnswer> | null = null;
  #ended: Error | null = null;

  constructor() {
    const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const entry = fileURLToPath(new URL(`./query-process.${ending}`, import.meta.url));
    this.#child = spawn(process.execPath, ['--max-old-space-size=256', entry], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
      // Nothing of the operator's; only where temporary files go.
      env: { TMPDIR: tmpdir() },
    });
    this.#child.on('message', (answer: QueryAnswer) => this.#waiting?.resolve(answer));
    this.#child.once('error', (error) => this.#end(error));
    this.#child.once('exit', () => this.#end(failed('its process ended')));
  }

  async ask(question: QueryQuestion): Promise<QueryAnswer> {
    if (this.#ended) throw this.#ended;
    this.#waiting = Promise.withResolvers();
    this.#child.send(question, (error) => error && this.#end(error));
    const answer = await this.#waiting.promise.finally(() => {
      this.#waiting = null;
    });
    if (answer.kind === 'failed') throw failed(answer.message);
    return answer;
  }

  kill(reason: Error = failed('it was stopped')): void {
    this.#end(reason);
    this.#child.kill('SIGKILL');
  }

  #end(reason: Error): void {
    this.#ended ??= reason;
    this.#waiting?.reject(this.#ended);
  }
}

function failed(detail: string): SeineError {
  return new SeineError(`the query failed: ${detail}`, {
    hint: 'use a read-only query on the views seine_tasks and seine_records',
  });
}
