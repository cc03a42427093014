import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { FastifyRequest } from 'fastify';
import { Problem } from './problems.ts';

/** Lists of URLs become a tenth; a body that becomes less than this is made to keep a server busy. */
const RATIO_MAX = 200;
/** Of the start of a body, which may be uniform. */
const FREE_BYTES = 1024 * 1024;

const CLOSE = { headers: { connection: 'close' } };

/** A body as it was before it was compressed. */
export function decodedBody({ headers }: Pick<FastifyRequest, 'headers'>, payload: Readable): Readable {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (encoding === 'identity' || encoding === '') return payload;
  if (encoding !== 'gzip')
    throw new Problem(
      'wrong-media-type',
      'Content-Encoding: a body may be compressed with gzip alone',
      CLOSE,
    );
  return Readable.from(unzipped(payload), { objectMode: false });
}

async function* unzipped(payload: Readable): AsyncGenerator<Buffer, void, void> {
  const gunzip = createGunzip();
  // The error is the same that ends the loop.
  pipeline(payload, gunzip, () => {});
  let bytes = 0;
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > FREE_BYTES && bytes > gunzip.bytesWritten * RATIO_MAX)
        throw new Problem('too-large-body', `it is compressed to less than 1/${RATIO_MAX}`, CLOSE);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof Problem) throw error;
    const isZlib = String((error as NodeJS.ErrnoException).code).startsWith('Z_');
    throw new Problem('bad-request', isZlib ? 'the body is not gzip' : 'the body ended early', CLOSE);
  } finally {
    gunzip.destroy();
  }
}
