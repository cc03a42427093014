import zlib from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { type Decoded, decodeBody, parseContentEncoding } from '../../../../src/fetch/body/content-coding.ts';

const PAGE = Buffer.from(`<html>${'<p>The quick brown fox, 42 times. '.repeat(400)}</html>`);
const CAP = 16 * 1024 * 1024;

const ENCODERS: Record<string, (body: Buffer) => Buffer> = {
  gzip: (body) => zlib.gzipSync(body),
  'x-gzip': (body) => zlib.gzipSync(body),
  deflate: (body) => zlib.deflateSync(body),
  br: (body) => zlib.brotliCompressSync(body, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: (body) => zlib.zstdCompressSync(body),
};
const NAMES = Object.keys(ENCODERS);

function encode(body: Buffer, names: string[]): Buffer {
  return names.reduce((bytes, name) => ENCODERS[name]!(bytes), body);
}

async function codeOf(wire: Buffer, names: string[], cap = CAP): Promise<string> {
  const decoded = await decodeBody(wire, names, cap);
  return decoded.ok ? 'ok' : decoded.code;
}

/** `toEqual` takes a second for megabytes. */
function isSame(decoded: Decoded, body: Buffer): boolean {
  return decoded.ok && decoded.body.equals(body);
}

/** Much output for little input, without building the output in memory. */
async function bomb(
  engine: zlib.Gzip | zlib.BrotliCompress | zlib.ZstdCompress,
  bytes: number,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const zeros = Buffer.alloc(1024 * 1024);
  engine.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise((resolve) => engine.on('end', resolve));
  for (let written = 0; written < bytes; written += zeros.length) {
    if (!engine.write(zeros)) await new Promise((resolve) => engine.once('drain', resolve));
  }
  engine.end();
  await ended;
  return Buffer.concat(chunks);
}

describe('parseContentEncoding', () => {
  test.each([
    [undefined, null],
    ['', null],
    ['identity', null],
    ['GZIP', ['gzip']],
    [' gzip , identity, br ', ['gzip', 'br']],
    [
      ['gzip', 'br'],
      ['gzip', 'br'],
    ],
  ])('%j', (header, names) => {
    expect(parseContentEncoding(header)).toEqual(names);
  });
});

describe('decodeBody', () => {
  test.each(NAMES)('undoes %s', async (name) => {
    expect(await decodeBody(encode(PAGE, [name]), [name], CAP)).toEqual({ ok: true, body: PAGE });
  });

  test('undoes raw deflate, which is not what the RFC says', async () => {
    expect(await decodeBody(zlib.deflateRawSync(PAGE), ['deflate'], CAP)).toEqual({ ok: true, body: PAGE });
  });

  test('undoes any stack of codings in reverse order', async () => {
    const stacks = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: LIMITS.contentCodingsMax });
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 5_000 }), stacks, async (bytes, names) => {
        const body = Buffer.from(bytes);
        expect(await decodeBody(encode(body, names), names, CAP)).toEqual({ ok: true, body });
      }),
      { numRuns: 100 },
    );
  });

  test('refuses more codings than the limit', async () => {
    const names = Array.from({ length: LIMITS.contentCodingsMax + 1 }, () => 'gzip');
    expect(await codeOf(encode(PAGE, names), names)).toBe('bad-encoding');
  });

  test.each(NAMES)('never takes a cut %s body for a whole one', async (name) => {
    const wire = encode(PAGE, [name]);
    for (const length of [1, 2, 5, wire.length >> 1, wire.length - 1]) {
      expect(await codeOf(wire.subarray(0, length), [name]), `${length} bytes`).toBe('truncated');
    }
  });

  test.each(NAMES)('says bad-encoding for plain text that claims %s', async (name) => {
    expect(await codeOf(PAGE, [name])).toBe('bad-encoding');
  });

  test('says bad-encoding for unknown codings, also among known ones', async () => {
    expect(await codeOf(encode(PAGE, ['gzip']), ['compress'])).toBe('bad-encoding');
    expect(await codeOf(encode(PAGE, ['gzip']), ['sdch', 'gzip'])).toBe('bad-encoding');
  });

  test('never throws on random bytes, and never invents more than the cap', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 500 }),
        fc.constantFrom(...NAMES),
        async (bytes, name) => {
          const decoded = await decodeBody(Buffer.from(bytes), [name], 1_000);
          if (decoded.ok) expect(decoded.body.length).toBeLessThanOrEqual(1_000);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('leaves an empty body empty', async () => {
    expect(await decodeBody(Buffer.alloc(0), ['gzip'], CAP)).toEqual({ ok: true, body: Buffer.alloc(0) });
  });

  test('joins gzip members and zstd frames that follow each other', async () => {
    for (const name of ['gzip', 'zstd']) {
      const wire = Buffer.concat([encode(PAGE, [name]), encode(PAGE, [name])]);
      expect(await decodeBody(wire, [name], CAP)).toEqual({ ok: true, body: Buffer.concat([PAGE, PAGE]) });
      expect(await codeOf(wire, [name], PAGE.length * 2 - 1)).toBe('too-large');
    }
  });

  test.each(NAMES)('holds the cap to the byte for %s', async (name) => {
    const wire = encode(PAGE, [name]);
    expect(await codeOf(wire, [name], PAGE.length)).toBe('ok');
    expect(await codeOf(wire, [name], PAGE.length - 1)).toBe('too-large');
  });

  test('decodes large bodies on the thread pool', async () => {
    const body = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => (index * 2_654_435_761) >>> 24));
    const decoded = decodeBody(zlib.gzipSync(body, { level: 0 }), ['gzip'], CAP);
    expect(decoded).toBeInstanceOf(Promise);
    expect(isSame(await decoded, body)).toBe(true);
  });

  test('decodes a small wire body that is large once decoded', async () => {
    // 100 different kilobytes, forty times: about 45:1, inside a window of 128 KB and more.
    const block = Buffer.from(
      Array.from({ length: 100_000 }, (_, index) => Math.imul(index, 2_654_435_761) >>> 24),
    );
    const body = Buffer.concat(Array.from({ length: 40 }, () => block));
    const wire = ENCODERS.br!(body);
    expect(wire.length).toBeLessThan(256 * 1024);
    expect(isSame(await decodeBody(wire, ['br'], CAP), body)).toBe(true);
  });

  test('leaves bombs at the cap, whatever they would become', async () => {
    const quality = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } };
    const bytes = 200 * 1024 * 1024;
    const bombs = {
      gzip: await bomb(zlib.createGzip({ level: 9 }), bytes),
      br: await bomb(zlib.createBrotliCompress(quality), bytes),
      zstd: await bomb(zlib.createZstdCompress(), bytes),
    };
    for (const [name, wire] of Object.entries(bombs)) {
      const before = process.memoryUsage();
      expect(await codeOf(wire, [name]), name).toBe('too-large');
      const after = process.memoryUsage();
      expect(after.external - before.external, name).toBeLessThan(6 * CAP);
    }
    expect(await codeOf(zlib.gzipSync(bombs.br), ['br', 'gzip'])).toBe('too-large');
  });

  test('lets tiny pages compress as well as they like, up to the floor', async () => {
    const zeros = Buffer.alloc(LIMITS.decodedRatioFloorBytes);
    expect(await codeOf(encode(zeros, ['br']), ['br'])).toBe('ok');
    expect(await codeOf(encode(Buffer.alloc(zeros.length + 1), ['br']), ['br'])).toBe('too-large');
  });

  test('takes no zstd window over 8 MB', async () => {
    const large = { params: { [zlib.constants.ZSTD_c_windowLog]: 27 } };
    expect(await codeOf(await bomb(zlib.createZstdCompress(large), 1024 * 1024), ['zstd'])).toBe(
      'bad-encoding',
    );
  });
});
