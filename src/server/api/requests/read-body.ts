import type { FastifyRequest } from 'fastify';
import { isJsonDeeper } from '../../../core/values/nesting.ts';
import { memoryShare } from '../../../machine/machine.ts';
import { Problem } from './problems.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Of its body, while they are in memory. */
    bodyBytes: number;
  }
}

/** A body of JSON is kept in memory whole; longer lists of URLs are streamed as NDJSON. */
const JSON_BYTES_MAX = 32 * 1024 * 1024;
/** A job as people write it down. Smaller than JSON may be: it is read by hand. */
const YAML_BYTES_MAX = 1024 * 1024;
/** Of all bodies that are kept in memory until their requests are answered. What is made of them takes some times as much. */
const BYTES_MAX = memoryShare(1 / 8, { min: JSON_BYTES_MAX, max: 128 * 1024 * 1024 });
/** Of those, one key may have so much: the others need some, too. */
const KEY_BYTES_MAX = Math.min(2 * JSON_BYTES_MAX, BYTES_MAX);
/** A client that takes longer than this for it is cut off. */
const JSON_MS_MAX = 30_000;
const DEPTH_MAX = 64;

/** Of whoever is not known yet: a key, or the message of a command. */
const STRANGER_BYTES_MAX = 4_096;
const STRANGER_MS_MAX = 5_000;
/** A connection is held while a body comes: strangers may hold few. */
const STRANGERS_MAX = 100;

/** The closed connection lets the client notice before all of its body is sent. */
const CLOSE = { headers: { connection: 'close' } };
const CLOSE_AND_WAIT = { headers: { connection: 'close', 'retry-after': '5' } };

/** Reads bodies that are kept in memory, which all share one limit. */
export class Bodies {
  readonly #limits: { bytesMax: number; keyBytesMax: number };
  readonly #byKey = new Map<string, number>();
  #bytes = 0;
  #strangers = 0;

  constructor(limits = { bytesMax: BYTES_MAX, keyBytesMax: KEY_BYTES_MAX }) {
    this.#limits = limits;
  }

  readonly json = async (request: FastifyRequest, payload: NodeJS.ReadableStream): Promise<unknown> =>
    jsonOf(await this.#read(request, payload, JSON_BYTES_MAX));

  readonly yaml = async (request: FastifyRequest, payload: NodeJS.ReadableStream): Promise<unknown> =>
    yamlOf(await this.#read(request, payload, YAML_BYTES_MAX));

  /** When a request is answered; one whose client is gone is answered, too. */
  free(request: FastifyRequest): void {
    const { bodyBytes } = request;
    request.bodyBytes = 0;
    const keyId = request.caller?.keyId ?? null;
    this.#bytes -= bodyBytes;
    if (keyId === null) return;
    const left = (this.#byKey.get(keyId) ?? 0) - bodyBytes;
    if (left > 0) this.#byKey.set(keyId, left);
    else this.#byKey.delete(keyId);
  }

  /** Why there is no room for them, or null. */
  #take(request: FastifyRequest, bytes: number): 'busy' | 'too-many-open' | null {
    const keyId = request.caller?.keyId ?? null;
    const own = keyId === null ? 0 : (this.#byKey.get(keyId) ?? 0);
    const { bytesMax, keyBytesMax } = this.#limits;
    if (own + bytes > keyBytesMax) return 'too-many-open';
    if (this.#bytes + bytes > bytesMax) return 'busy';
    this.#bytes += bytes;
    request.bodyBytes += bytes;
    if (keyId !== null) this.#byKey.set(keyId, own + bytes);
    return null;
  }

  /** Whoever sends it was authenticated before, where the path needs that. */
  async #read(request: FastifyRequest, payload: NodeJS.ReadableStream, bytesMax: number): Promise<string> {
    if (request.caller != null) return this.#readText(request, payload, { bytesMax, msMax: JSON_MS_MAX });
    if (this.#strangers >= STRANGERS_MAX) throw new Problem('busy', undefined, CLOSE_AND_WAIT);
    this.#strangers++;
    try {
      const limits = { bytesMax: STRANGER_BYTES_MAX, msMax: STRANGER_MS_MAX };
      return await this.#readText(request, payload, limits);
    } finally {
      this.#strangers--;
    }
  }

  #readText(
    request: FastifyRequest,
    payload: NodeJS.ReadableStream,
    { bytesMax, msMax }: { bytesMax: number; msMax: number },
  ): Promise<string> {
    if (Number(request.headers['content-length'] ?? 0) > bytesMax)
      return Promise.reject(new Problem('too-large-body', undefined, CLOSE));
    return new Promise((resolve, reject) => {
      let chunks: Buffer[] = [];
      let bytes = 0;
      const refuse = (problem: Problem) => {
        chunks = [];
        bytes = Number.POSITIVE_INFINITY;
        reject(problem);
      };
      const timer = setTimeout(() => refuse(new Problem('too-slow', undefined, CLOSE)), msMax);
      payload.on('data', (chunk: Buffer) => {
        if (bytes > bytesMax) return;
        bytes += chunk.length;
        const refused = bytes > bytesMax ? 'too-large-body' : this.#take(request, chunk.length);
        if (refused === null) chunks.push(chunk);
        else if (refused === 'too-large-body') refuse(new Problem(refused, undefined, CLOSE));
        else refuse(new Problem(refused, 'too many large bodies at once', CLOSE_AND_WAIT));
      });
      payload.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
      payload.on('error', (error) =>
        refuse(error instanceof Problem ? error : new Problem('bad-request', 'the body ended early', CLOSE)),
      );
      payload.on('close', () => clearTimeout(timer));
    });
  }
}

async function yamlOf(text: string): Promise<unknown> {
  const { parseDocument } = await import('yaml');
  const document = parseDocument(text, { logLevel: 'silent' });
  const [wrong] = document.errors;
  if (wrong) throw new Problem('bad-yaml', wrong.message.split('\n')[0]!.slice(0, 300));
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    return jsonOf(JSON.stringify(value ?? null));
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem('bad-yaml', 'too many aliases, or one that leads to itself');
  }
}

function jsonOf(text: string): unknown {
  // Many clients name the type of every POST, also of one without a body.
  if (text.trim() === '') return undefined;
  // Before parsing: deep data would end whoever walks through it.
  if (isJsonDeeper(text, DEPTH_MAX))
    throw new Problem('bad-json', `deeper than ${DEPTH_MAX} lists or objects`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem('bad-json', (error as SyntaxError).message.slice(0, 200));
  }
}

/** Longer lines are no URLs. */
const LINE_BYTES_MAX = 64 * 1024;
/** A client that sends nothing for so long is cut off. */
const SILENCE_MS_MAX = 30_000;

type Body = AsyncIterable<Buffer> & { destroy?(error?: Error): void };

/** Chunks as they come. */
export async function* chunksOf(payload: Body): AsyncGenerator<Buffer, void, void> {
  let isSilent = false;
  const watch = () =>
    setTimeout(() => {
      isSilent = true;
      payload.destroy?.(new Error('silent'));
    }, SILENCE_MS_MAX);
  let timer = watch();
  try {
    for await (const chunk of payload) {
      clearTimeout(timer);
      yield chunk;
      timer = watch();
    }
  } catch (error) {
    if (isSilent) throw new Problem('too-slow', undefined, CLOSE);
    throw error instanceof Problem ? error : new Problem('bad-request', 'the body ended early', CLOSE);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Lines of a body without the empty ones, as many at a time as came together: to wait for each would take longer than to read it.
 * One that is too long is cut: it is no URL then.
 */
export async function* readLines(payload: Body): AsyncGenerator<string[], void, void> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of chunksOf(payload)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop()!;
    if (rest.length > LINE_BYTES_MAX) rest = rest.slice(0, LINE_BYTES_MAX);
    const read = lines.map((line) => line.trim().slice(0, LINE_BYTES_MAX)).filter((line) => line !== '');
    if (read.length > 0) yield read;
  }
  if (rest.trim() !== '') yield [rest.trim()];
}
