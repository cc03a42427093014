import type { FastifyRequest } from 'fastify';
import { isJsonDeeper } from '../../../core/values/nesting.ts';
import { Problem } from './problems.ts';

/** A body of JSON is kept in memory whole; longer lists of URLs are streamed as NDJSON. */
const JSON_BYTES_MAX = 32 * 1024 * 1024;
/** A client that takes longer than this for it is cut off. */
const JSON_MS_MAX = 30_000;
const DEPTH_MAX = 64;

/** Of whoever is not known yet: a key, or the message of a command. */
const STRANGER_BYTES_MAX = 4_096;

/** The closed connection lets the client notice before all of its body is sent. */
const CLOSE = { headers: { connection: 'close' } };

export async function parseJson(request: FastifyRequest, payload: NodeJS.ReadableStream): Promise<unknown> {
  return jsonOf(await readText(request, payload, JSON_BYTES_MAX));
}

/** A job as people write it down. Smaller than JSON may be: it is read by hand. */
const YAML_BYTES_MAX = 1024 * 1024;

export async function parseYaml(request: FastifyRequest, payload: NodeJS.ReadableStream): Promise<unknown> {
  const text = await readText(request, payload, YAML_BYTES_MAX);
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

/** Whoever sends it was authenticated before, where the path needs that. */
function readText(
  { headers, caller }: FastifyRequest,
  payload: NodeJS.ReadableStream,
  knownMax: number,
): Promise<string> {
  const bytesMax = caller == null ? STRANGER_BYTES_MAX : knownMax;
  if (Number(headers['content-length'] ?? 0) > bytesMax)
    return Promise.reject(new Problem('too-large-body', undefined, CLOSE));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(() => reject(new Problem('too-slow', undefined, CLOSE)), JSON_MS_MAX);
    payload.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bytesMax) chunks.push(chunk);
      else reject(new Problem('too-large-body', undefined, CLOSE));
    });
    payload.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    payload.on('error', () => reject(new Problem('bad-request', 'the body ended early', CLOSE)));
    payload.on('close', () => clearTimeout(timer));
  });
}

function jsonOf(text: string): unknown {
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

/** Lines of a body without the empty ones, as they come. One that is too long is cut: it is no URL then. */
export async function* readLines(payload: Body): AsyncGenerator<string, void, void> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of chunksOf(payload)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop()!;
    if (rest.length > LINE_BYTES_MAX) rest = rest.slice(0, LINE_BYTES_MAX);
    for (const line of lines) {
      const text = line.trim();
      if (text !== '') yield text.slice(0, LINE_BYTES_MAX);
    }
  }
  if (rest.trim() !== '') yield rest.trim();
}
