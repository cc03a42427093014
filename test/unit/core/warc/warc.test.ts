import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  encodeRequest,
  encodeResponseRecord,
  encodeRevisit,
  encodeWarcinfo,
  formerDigestOf,
  RECORD_END,
  type ResponseRecord,
  recordBytes,
} from '../../../../src/core/warc/warc.ts';
import { parseRecord, readResponse } from '../../../../src/core/warc/warc-reader.ts';

const ID = '6b1f4a1e-6c1a-4d6e-9d3b-0a1b2c3d4e5f';
const DATE = Date.UTC(2026, 0, 5, 12, 34, 56, 789);

function response(changes: Partial<ResponseRecord> = {}): Buffer {
  const wireBody = changes.wireBody ?? Buffer.from('<p>hello</p>');
  return recordBytes(
    encodeResponseRecord({
      url: 'https://shop.example/product/1?a=b',
      date: DATE,
      recordId: ID,
      status: 200,
      statusText: 'OK',
      rawHeaders: ['Content-Type', 'text/html; charset=utf-8'],
      ...changes,
      wireBody,
    }),
  );
}

const read = (bytes: Buffer) => readResponse(parseRecord(bytes));

describe('encodeResponseRecord', () => {
  test('writes exactly this record', () => {
    expect(response({ wireBody: Buffer.from('hi'), ip: '192.0.2.7' }).toString()).toBe(
      [
        'WARC/1.1',
        'WARC-Type: response',
        `WARC-Record-ID: <urn:uuid:${ID}>`,
        'WARC-Date: 2026-01-05T12:34:56.789Z',
        'WARC-Target-URI: https://shop.example/product/1?a=b',
        'WARC-IP-Address: 192.0.2.7',
        'WARC-Payload-Digest: sha256:8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4',
        'Content-Type: application/http; msgtype=response',
        'Content-Length: 80',
        '',
        'HTTP/1.1 200 OK',
        'Content-Type: text/html; charset=utf-8',
        'Content-Length: 2',
        '',
        'hi\r\n\r\n',
      ].join('\r\n'),
    );
  });

  test('comes back as it was', () => {
    const record = parseRecord(response());
    expect(record.type).toBe('response');
    expect(record.id).toBe(`<urn:uuid:${ID}>`);
    expect(record.date).toBe(DATE);
    expect(record.url).toBe('https://shop.example/product/1?a=b');
    expect(readResponse(record)).toEqual({
      status: 200,
      statusText: 'OK',
      headers: ['Content-Type', 'text/html; charset=utf-8', 'Content-Length', '12'],
      body: Buffer.from('<p>hello</p>'),
    });
  });

  test('the framing of the response is that of the stored bytes', () => {
    const headersOf = (rawHeaders: string[]) =>
      read(response({ rawHeaders, wireBody: Buffer.from('12345') })).headers;
    expect(headersOf(['Transfer-Encoding', 'chunked', 'A', 'b'])).toEqual(['A', 'b', 'Content-Length', '5']);
    expect(headersOf(['content-length', '5', 'A', 'b'])).toEqual(['content-length', '5', 'A', 'b']);
    expect(headersOf(['Content-Length', '99', 'A', 'b'])).toEqual(['A', 'b', 'Content-Length', '5']);
    expect(headersOf(['Content-Length', '5', 'Content-Length', '5'])).toEqual(['Content-Length', '5']);
    expect(headersOf(['Content-Length', '-1'])).toEqual(['Content-Length', '5']);
  });

  test('codings stay, and say that the body is compressed', () => {
    const encode = (rawHeaders: string[]) =>
      encodeResponseRecord({
        url: 'https://a.example/',
        date: DATE,
        recordId: ID,
        status: 200,
        statusText: '',
        rawHeaders,
        wireBody: Buffer.from('x'),
      });
    expect(encode(['Content-Encoding', 'br']).coded).toBe(true);
    expect(encode(['Content-Encoding', 'identity']).coded).toBe(false);
    expect(encode([]).coded).toBe(false);
    expect(read(recordBytes(encode(['Content-Encoding', 'br']))).headers.slice(0, 2)).toEqual([
      'Content-Encoding',
      'br',
    ]);
  });

  test('empty bodies, odd statuses and repeated headers', () => {
    const empty = read(response({ status: 99, statusText: '', wireBody: Buffer.alloc(0) }));
    expect([empty.status, empty.statusText, empty.body.length]).toEqual([99, '', 0]);
    const cookies = read(response({ rawHeaders: ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'] })).headers;
    expect(cookies.slice(0, 4)).toEqual(['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']);
  });

  test('headers cannot break out of their line', () => {
    const injected = read(
      response({
        statusText: 'OK\r\nEvil: 1',
        rawHeaders: [
          'X\r\nEvil',
          '1',
          'Y',
          'a\r\n\r\nHTTP/1.1 200 OK',
          'Z',
          'a\0b',
          '',
          'no name',
          'S p',
          'x',
        ],
        url: 'https://a.example/\r\nWARC-Type: metadata <x>',
      }),
    );
    expect(injected.statusText).toBe('OK Evil: 1');
    expect(injected.headers).toEqual([
      'X_Evil',
      '1',
      'Y',
      'a HTTP/1.1 200 OK',
      'Z',
      'a b',
      'S_p',
      'x',
      'Content-Length',
      '12',
    ]);
  });

  test('octets of a header survive; text beyond them is UTF-8', () => {
    expect(read(response({ rawHeaders: ['X-Name', 'Caf\xe9'] })).headers[1]).toBe('Caf\xe9');
    const utf8 = read(response({ rawHeaders: ['X-Name', 'Ж'] })).headers[1]!;
    expect(Buffer.from(utf8, 'latin1').toString('utf8')).toBe('Ж');
  });

  test('a URL that is not ASCII is escaped', () => {
    expect(parseRecord(response({ url: 'https://a.example/é x' })).url).toBe('https://a.example/%C3%A9%20x');
    expect(parseRecord(response({ url: 'https://a.example/\ud800' })).url).toBe(
      'https://a.example/%EF%BF%BD',
    );
  });

  test('whatever a server sends, the record is valid and the body comes back', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom('\r', '\n', '\0', ':', ' ', 'a', '\xff') }),
    );
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 12 }),
        text,
        text,
        fc.uint8Array({ maxLength: 500 }),
        (rawHeaders, statusText, url, body) => {
          const wireBody = Buffer.from(body);
          const bytes = response({ rawHeaders, statusText, url: `https://a.example/${url}`, wireBody });
          expect(read(bytes).body.equals(wireBody)).toBe(true);
        },
      ),
      { numRuns: 200 },
    );
  });
});

test('a digest of the whole block is written on demand, and checked when it is read', () => {
  const bytes = response({ blockDigest: true });
  const block = bytes.subarray(bytes.indexOf('HTTP/1.1'), -RECORD_END.length);
  const digest = createHash('sha256').update(block).digest('hex');
  expect(parseRecord(bytes).headers.get('warc-block-digest')).toBe(`sha256:${digest}`);
  const changed = Buffer.from(bytes.toString('latin1').replace('200 OK', '200 KO'), 'latin1');
  expect(() => parseRecord(changed)).toThrow('WARC-Block-Digest does not fit');
});

test.each([true, false])(
  'a URL that looks like an empty digest stays what it is (digest %s)',
  (blockDigest) => {
    const url = `https://shop.example/?sha256:${'0'.repeat(64)}`;
    const record = parseRecord(response({ url, blockDigest }));
    expect(record.url).toBe(url);
    expect(record.headers.has('warc-block-digest')).toBe(blockDigest);
    const request = recordBytes(
      encodeRequest({ url, date: DATE, recordId: ID, concurrentTo: ID, requestHeaders: [] }),
    );
    expect(parseRecord(request).url).toBe(url);
  },
);

test('the request of a URL that is not normalised has neither its fragment nor its password', () => {
  const url = 'https://me:secret@shop.example/a?b#c';
  const about = { url, date: DATE, recordId: ID, concurrentTo: ID, requestHeaders: [] };
  expect(parseRecord(recordBytes(encodeRequest(about))).block.toString()).toBe(
    'GET /a?b HTTP/1.1\r\nHost: shop.example\r\n\r\n',
  );
});

test('a request is written as it was sent, without what it was let in with', () => {
  const requestHeaders = [
    'User-Agent',
    'Seine',
    'COOKIE',
    'a=1',
    'authorization',
    'Basic x',
    'A',
    'b\r\nc: d',
  ];
  const about = { url: 'https://shop.example/a?b=c', date: DATE, recordId: ID, concurrentTo: ID };
  const record = parseRecord(recordBytes(encodeRequest({ ...about, requestHeaders })));
  expect(record).toMatchObject({ type: 'request', url: about.url, date: DATE });
  expect(record.headers.get('warc-concurrent-to')).toBe(`<urn:uuid:${ID}>`);
  expect(record.block.toString()).toBe(
    'GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: Seine\r\nA: b c: d\r\n\r\n',
  );
  const named = recordBytes(encodeRequest({ ...about, requestHeaders: ['host', 'other.example'] }));
  expect(parseRecord(named).block.toString()).toBe('GET /a?b=c HTTP/1.1\r\nhost: other.example\r\n\r\n');
});

test.each([
  ['same-bytes', 'identical-payload-digest'],
  ['not-modified', 'server-not-modified'],
] as const)('a revisit (%s) says where its page is', (kind, profile) => {
  const at = Date.UTC(2025, 5, 1, 1, 2, 3, 4);
  const record = parseRecord(
    recordBytes(
      encodeRevisit({
        ...{ url: 'https://shop.example/', date: DATE, recordId: ID, kind },
        ...{ status: 304, statusText: 'Not Modified', rawHeaders: ['ETag', '"x"', 'Content-Length', '7'] },
        refersTo: { at, sha256: 'ab'.repeat(32) },
      }),
    ),
  );
  expect(record.type).toBe('revisit');
  expect(record.headers.get('warc-profile')).toBe(`http://netpreserve.org/warc/1.1/revisit/${profile}`);
  expect(record.headers.get('warc-refers-to-target-uri')).toBe('https://shop.example/');
  expect(record.headers.get('warc-refers-to-date')).toBe('2025-06-01T01:02:03.004Z');
  expect(record.headers.get('warc-payload-digest')).toBe(`sha256:${'ab'.repeat(32)}`);
  expect(record.block.toString()).toBe('HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n');
});

test('digests keep to the grammar of the standard, and older ones are still read', () => {
  const bytes = response().toString('latin1');
  for (const [, value] of bytes.matchAll(/^WARC-\w+-Digest: (.*)\r$/gm))
    expect(value).toMatch(/^[\w!#$%&'*+.^`|~-]+:[\w!#$%&'*+.^`|~-]+$/);
  const former = bytes.replace(
    /^(WARC-Payload-Digest: ).*\r$/m,
    `$1${formerDigestOf(Buffer.from('<p>hello</p>'))}\r`,
  );
  expect(former).toContain('====');
  expect(read(Buffer.from(former, 'latin1')).body.toString()).toBe('<p>hello</p>');
  expect(() => read(Buffer.from(former.replace('hello', 'hallo'), 'latin1'))).toThrow('does not fit');
});

test('warcinfo comes back as it was', () => {
  const fields = { software: 'Seine/1', operator: 'Zoë\r\nevil: yes' };
  const record = parseRecord(
    recordBytes(encodeWarcinfo({ date: DATE, recordId: ID, filename: 'a.warc.gz', fields })),
  );
  expect(record.type).toBe('warcinfo');
  expect(record.url).toBeNull();
  expect(record.headers.get('warc-filename')).toBe('a.warc.gz');
  expect(record.headers.get('content-type')).toBe('application/warc-fields');
  expect(record.block.toString().split('\r\n')).toEqual([
    'format: WARC File Format 1.1',
    'conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/',
    'software: Seine/1',
    'operator: Zoë evil: yes',
    '',
  ]);
});
