import type { MessagePort } from 'node:worker_threads';
import { SeineError, StorageFullError } from '../../core/errors.ts';
import { Problem, type ProblemCode } from '../api/requests/problems.ts';

/** Calls of methods in another thread, over a port. What is passed is copied, so it has to be data. */

interface Call {
  id: number;
  part: string;
  method: string;
  args: unknown[];
}

type Answer = { id: number; value: unknown } | { id: number; error: CopiedError };

/** Errors that mean something to whoever called; of all others only what they say. */
export type CopiedError =
  | {
      kind: 'problem';
      code: ProblemCode;
      detail: string;
      headers: Record<string, string>;
      extensions: object;
    }
  | { kind: 'full' | 'other'; message: string }
  | { kind: 'seine'; message: string; hint: string | null };

export function copyError(error: unknown): CopiedError {
  if (error instanceof Problem) {
    const { code, message: detail, headers, extensions } = error;
    return { kind: 'problem', code, detail, headers: { ...headers }, extensions: { ...extensions } };
  }
  if (error instanceof StorageFullError) return { kind: 'full', message: error.message };
  if (error instanceof SeineError) return { kind: 'seine', message: error.message, hint: error.hint };
  return { kind: 'other', message: error instanceof Error ? error.message : String(error) };
}

export function errorOf(copied: CopiedError): Error {
  if (copied.kind === 'problem') {
    const { code, detail, headers, extensions } = copied;
    return new Problem(code, detail, { headers, extensions: { ...extensions } });
  }
  const { kind, message } = copied;
  if (kind === 'full') return new StorageFullError(message);
  if (kind === 'seine') return new SeineError(message, { hint: copied.hint ?? undefined });
  return new Error(message);
}

/** Answers calls with the methods of these objects. */
export function answerCalls(port: MessagePort, parts: ReadonlyMap<string, object>): void {
  port.on('message', async ({ id, part, method, args }: Call) => {
    let answer: Answer;
    try {
      const of = parts.get(part) as Record<string, (...args: unknown[]) => unknown> | undefined;
      if (typeof of?.[method] !== 'function') throw new Error(`no call ${part}.${method}`);
      answer = { id, value: await of[method](...args) };
    } catch (error) {
      answer = { id, error: copyError(error) };
    }
    try {
      port.postMessage(answer);
    } catch (error) {
      port.postMessage({ id, error: copyError(error) } satisfies Answer);
    }
  });
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** The other side: objects whose methods are calls over the port. */
export class RemoteCalls {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', (answer: Answer) => {
      const asked = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('error' in answer) asked?.reject(errorOf(answer.error));
      else asked?.resolve(answer.value);
    });
    port.on('close', () => {
      for (const asked of this.#waiting.values()) asked.reject(new Error('the server ended'));
      this.#waiting.clear();
    });
  }

  part<T extends object>(part: string): T {
    return new Proxy({} as T, {
      get: (_, method) =>
        typeof method === 'string' ? (...args: unknown[]) => this.#call(part, method, args) : undefined,
    });
  }

  #call(part: string, method: string, args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++this.#last;
      this.#waiting.set(id, { resolve, reject });
      this.#port.postMessage({ id, part, method, args } satisfies Call);
    });
  }
}
