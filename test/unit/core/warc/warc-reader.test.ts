import { describe, expect, test } from 'vitest';
import {
  digestOf,
  encodeResponseRecord,
  encodeWarcinfo,
  recordBytes,
} from '../../../../src/core/warc/warc.ts';
import { parseRecord, readResponse, WarcError } from '../../../../src/core/warc/warc-reader.ts';

const ID = '6b1f4a1e-6c1a-4d6e-9d3b-0a1b2c3d4e5f';
const DATE = Date.UTC(2026, 0, 5, 12, 34, 56, 789);

function response(): Buffer {
  const wireBody = Buffer.from('<p>hello</p>');
  return recordBytes(
    encodeResponseRecord({
      url: 'https://shop.example/product/1?a=b',
      date: DATE,
      recordId: ID,
      status: 200,
      statusText: 'OK',
      rawHeaders: ['Content-Type', 'text/html; charset=utf-8'],
      wireBody,
    }),
  );
}

const read = (bytes: Buffer) => readResponse(parseRecord(bytes));

describe('parseRecord refuses', () => {
  const whole = response().toString('latin1');
  const without = (name: string) => whole.replace(new RegExp(`^${name}: .*\r\n`, 'm'), '');
  const defects: [string, string, RegExp][] = [
    ['nothing', '', /no end/],
    ['another version', whole.replace('WARC/1.1', 'WARC/0.9'), /version/],
    ['bytes before the record', `\r\n${whole}`, /version/],
    ['a header without end', whole.slice(0, 200), /no end/],
    ['no type', without('WARC-Type'), /WARC-Type is missing/],
    ['no id', without('WARC-Record-ID'), /WARC-Record-ID is missing/],
    ['no date', without('WARC-Date'), /WARC-Date is missing/],
    ['no URI', without('WARC-Target-URI'), /WARC-Target-URI is missing/],
    ['no content type', without('Content-Type'), /Content-Type is missing/],
    ['no length', without('Content-Length'), /Content-Length is missing/],
    ['an id without brackets', whole.replace(/<(urn[^>]*)>/, '$1'), /WARC-Record-ID/],
    ['a date that is none', whole.replace('2026-01-05', '2026-13-45'), /WARC-Date/],
    ['a date without zone', whole.replace('56.789Z', '56.789'), /WARC-Date/],
    ['a length that is none', whole.replace(/Content-Length: \d+/, 'Content-Length: 1e2'), /not a number/],
    ['a length too small', whole.replace(/Content-Length: \d+/, 'Content-Length: 10'), /says 10 bytes/],
    ['a length too large', whole.replace(/Content-Length: \d+/, 'Content-Length: 1000'), /says 1000 bytes/],
    ['a record cut short', whole.slice(0, -1), /bytes/],
    ['a record without its end', `${whole.slice(0, -4)}abcd`, /two line ends/],
    ['bytes after the record', `${whole}\r\n`, /bytes/],
    ['two records', whole + whole, /bytes/],
    [
      'a header twice',
      whole.replace('WARC-Type: response', 'WARC-Type: response\r\nWARC-Type: response'),
      /twice/,
    ],
    ['a line that is no header', whole.replace('WARC-Type', 'WARC Type'), /not a header line/],
    ['a folded header', whole.replace('WARC-Date', ' WARC-Date'), /not a header line/],
    ['a changed body', whole.replace('hello', 'hallo'), /WARC-Payload-Digest does not fit/],
    ['a digest of another kind', whole.replace('sha256:', 'md5:'), /not a sha256/],
    [
      'a block digest that does not fit',
      whole.replace('WARC-Type', `WARC-Block-Digest: ${digestOf(Buffer.from('x'))}\r\nWARC-Type`),
      /WARC-Block-Digest/,
    ],
    ['a body that is not HTTP', whole.replace('HTTP/1.1 200', 'HTTQ/1.1 200'), /status line/],
    [
      'another length in the response',
      whole.replace('Content-Length: 12\r\n', 'Content-Length: 13\r\n'),
      /13 bytes/,
    ],
  ];
  test.each(defects)('%s', (_, text, message) => {
    expect(text).not.toBe(whole);
    const attempt = () => read(Buffer.from(text, 'latin1'));
    expect(attempt).toThrow(WarcError);
    expect(attempt).toThrow(message);
  });

  test('any other single byte in the body, the status line or the ends', () => {
    const bytes = response();
    const blockAt = bytes.indexOf('HTTP/1.1');
    for (const at of [blockAt, bytes.length - 1, bytes.length - 4, bytes.length - 5, bytes.length - 16]) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 0x01;
      expect(() => parseRecord(changed)).toThrow(WarcError);
    }
  });
});

test('readResponse refuses a record that is no response', () => {
  const info = recordBytes(encodeWarcinfo({ date: DATE, recordId: ID, filename: 'a', fields: {} }));
  expect(() => readResponse(parseRecord(info))).toThrow(/not an HTTP response/);
});
