import { createCipheriv, createDecipheriv, createHash, hash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { canonicalJson } from '../../../core/values/canonical-json.ts';
import type { RoutePlugin } from './access.ts';
import { Problem } from './problems.ts';
import { chunksOf } from './read-body.ts';

/**
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07) for every POST: a request that was answered gets the same
 * answer again, one that is being answered 409, another request with the key 422. A request whose server died, or that failed
 * because of the server, may be sent again: what it has made so far is found by `request.requestId`.
 */

export const IDEMPOTENCY_MS = 86_400_000;
const KEY_CHARACTERS_MAX = 255;
/** A request of a process that is gone may be sent again after this long. */
const HELD_MS = 60_000;
const EXTEND_MS = 20_000;
/** A longer reply is not kept: the request is answered anew. */
const REPLY_BYTES_MAX = 8 * 1024 * 1024;
const KEPT_HEADERS = ['content-type', 'location', 'retry-after'] as const;
/** What the caller can change without another request: these are not kept. */
const NOT_KEPT = new Set([401, 403, 408, 409, 413, 429]);

declare module 'fastify' {
  interface FastifyRequest {
    /** The same for all requests with one Idempotency-Key; null without one. */
    requestId: string | null;
    idempotent: OpenRequest | null;
  }
}

interface OpenRequest {
  key: string;
  secret: Buffer;
  /** Hash of what was sent, known once it is read. */
  payload(): string;
}

interface KeptReply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export const idempotency: RoutePlugin = (app, { store: { requests }, now }) => {
  const holder = randomBytes(8).toString('hex');
  const open = new Set<string>();
  const timer = setInterval(
    () => void requests.extend([...open], holder, now() + HELD_MS).catch(() => {}),
    EXTEND_MS,
  );
  timer.unref();
  app.addHook('onClose', async () => clearInterval(timer));
  app.decorateRequest('requestId', null);
  app.decorateRequest('idempotent', null);

  app.addHook('preHandler', async (request, reply) => {
    const given = request.method === 'POST' ? keyOf(request) : null;
    if (given === null) return;
    const { key, secret } = given;
    const at = now();
    const begun = await requests.begin(key, {
      id: randomBytes(12).toString('hex'),
      holder,
      now: at,
      until: at + HELD_MS,
      forgetBefore: at - IDEMPOTENCY_MS,
    });
    if (begun.kind === 'in-flight')
      throw new Problem('in-flight', undefined, { headers: { 'retry-after': '1' } });
    const payload = hashedBody(request);
    if (begun.kind === 'begun') {
      open.add(key);
      request.requestId = begun.id;
      request.idempotent = { key, secret, payload };
      return;
    }
    if (request.body instanceof Readable) for await (const _ of request.body);
    if (payload() !== begun.payload) throw new Problem('key-reused');
    return replay(reply, decrypt(secret, begun.reply));
  });

  app.addHook('onSend', async (request, reply, sent) => {
    const { idempotent } = request;
    if (!idempotent) return sent;
    const { key, secret } = idempotent;
    request.idempotent = null;
    open.delete(key);
    if (!isKept(reply.statusCode, sent)) {
      await requests.release(key, holder);
      return sent;
    }
    const headers = Object.fromEntries(
      KEPT_HEADERS.flatMap((name) => (reply.hasHeader(name) ? [[name, String(reply.getHeader(name))]] : [])),
    );
    const kept: KeptReply = { status: reply.statusCode, headers, body: String(sent ?? '') };
    await requests.answer(key, holder, {
      payload: idempotent.payload(),
      reply: encrypt(secret, JSON.stringify(kept)),
    });
    return sent;
  });
};

function isKept(status: number, sent: unknown): boolean {
  if (status >= 500 || NOT_KEPT.has(status)) return false;
  return (
    sent == null || ((typeof sent === 'string' || Buffer.isBuffer(sent)) && sent.length <= REPLY_BYTES_MAX)
  );
}

function replay(reply: FastifyReply, text: string): FastifyReply {
  const { status, headers, body } = JSON.parse(text) as KeptReply;
  return reply
    .code(status)
    .headers({ ...headers, 'idempotent-replayed': 'true' })
    .send(body);
}

/** As the draft has it: a string in quotes. The store gets a hash of it, and replies are encrypted with another. */
function keyOf({ headers, caller }: FastifyRequest): { key: string; secret: Buffer } | null {
  const given = headers['idempotency-key'] ?? headers['x-idempotency-key'];
  if (given === undefined) return null;
  const text = String(given).replace(/^"(.*)"$/, '$1');
  if (text === '' || text.length > KEY_CHARACTERS_MAX)
    throw new Problem('bad-option', 'Idempotency-Key: 1 to 255 characters');
  const own = [caller.keyId, text];
  return {
    key: hash('sha256', JSON.stringify(['key', ...own]), 'hex'),
    secret: hash('sha256', JSON.stringify(['reply', ...own]), 'buffer'),
  };
}

/** Of method, address and body. A list that is streamed is hashed as it is read, so it is known at its end. */
function hashedBody(request: FastifyRequest): () => string {
  const sum = createHash('sha256').update(`${request.method} ${request.url}\n`);
  const { body } = request;
  if (body instanceof Readable) {
    request.body = Readable.from(
      hashing(body, (chunk) => sum.update(chunk)),
      { objectMode: false },
    );
  } else if (body !== undefined) sum.update(canonicalJson(body));
  let digest: string | null = null;
  return () => {
    digest ??= sum.digest('hex');
    return digest;
  };
}

async function* hashing(
  body: Readable,
  onChunk: (chunk: Buffer) => void,
): AsyncGenerator<Buffer, void, void> {
  for await (const chunk of chunksOf(body)) {
    onChunk(chunk);
    yield chunk;
  }
}

const IV_BYTES = 12;
const TAG_BYTES = 16;

function encrypt(secret: Buffer, text: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', secret, iv);
  const parts = [cipher.update(text, 'utf8'), cipher.final()];
  return Buffer.concat([iv, cipher.getAuthTag(), ...parts]).toString('base64');
}

function decrypt(secret: Buffer, kept: string): string {
  const bytes = Buffer.from(kept, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', secret, bytes.subarray(0, IV_BYTES));
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  const parts = [decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()];
  return Buffer.concat(parts).toString('utf8');
}
