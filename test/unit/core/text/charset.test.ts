import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { decodeText, sniffCharset } from '../../../../src/core/text/charset.ts';
import { cpuNow } from '../../../support/cpu-time.ts';

interface CharsetCase {
  fact: string;
  /** Bytes, a character each: what comes before a comment, how long that is with its marks, and what follows. */
  before?: string;
  comment?: number;
  page: string;
  is: string;
}

const CASES: CharsetCase[] = JSON.parse(
  readFileSync(new URL('../../../fixtures/charset-cases.json', import.meta.url), 'utf8'),
);

function bytesOf({ before = '', comment, page }: CharsetCase): Buffer {
  const filled = comment === undefined ? '' : `<!--${'y'.repeat(comment - '<!---->'.length)}-->`;
  return Buffer.from(before + filled + page, 'latin1');
}

describe('as browsers choose', () => {
  test.each(CASES)('$fact', (given) => {
    expect(sniffCharset(bytesOf(given), null)).toBe(given.is);
  });
});

const latin1 = (text: string) => Buffer.from(text, 'latin1');

describe('sniffCharset', () => {
  test.each([
    ['a BOM beats the header', latin1('\xef\xbb\xbfx'), 'text/html; charset=iso-8859-2', 'utf-8'],
    ['UTF-16 by BOM, big', latin1('\xfe\xff\x00x'), null, 'utf-16be'],
    ['UTF-16 by BOM, little', latin1('\xff\xfex\x00'), null, 'utf-16le'],
    [
      'the header beats the page',
      latin1('<meta charset=iso-8859-2>'),
      'text/html;charset="Shift_JIS"',
      'shift_jis',
    ],
    [
      'an unknown label in the header',
      latin1('<meta charset=iso-8859-2>'),
      'text/html; charset=nonsense',
      'iso-8859-2',
    ],
    ['latin-1 means windows-1252', latin1('x'), 'text/html; charset=ISO-8859-1', 'windows-1252'],
    ['UTF-16 claimed in ASCII', latin1('<meta charset=utf-16>'), null, 'utf-8'],
    ['x-user-defined', latin1('<meta charset=x-user-defined>'), null, 'windows-1252'],
    [
      'single quotes in content',
      latin1('<meta http-equiv=content-type content="text/html; charset=\'koi8-r\'">'),
      null,
      'koi8-r',
    ],
    [
      'XML declaration',
      latin1('<?xml version="1.0" encoding="iso-8859-2"?><rss/>'),
      'application/rss+xml',
      'iso-8859-2',
    ],
    ['no markup, no claim', latin1('<meta charset=iso-8859-2>'), 'text/plain', 'windows-1252'],
    ['nothing said, valid UTF-8', Buffer.from('<p>für'), 'text/html', 'utf-8'],
    ['nothing said, not UTF-8', latin1('<p>f\xfcr'), 'text/html', 'windows-1252'],
    ['nothing said, JSON', Buffer.from('{"a":"ü"}'), 'application/json', 'utf-8'],
    ['nothing at all', Buffer.alloc(0), null, 'windows-1252'],
    ['a tag that never ends', latin1('<p title="<meta charset=iso-8859-2>'), null, 'windows-1252'],
    ['an empty comment', latin1('<!--><meta charset=iso-8859-2>'), null, 'iso-8859-2'],
  ])('%s', (_, bytes, contentType, expected) => {
    expect(sniffCharset(bytes, contentType)).toBe(expected);
  });

  test('looks at a view of a larger buffer, and only there', () => {
    const whole = latin1('<meta charset=koi8-r><meta charset=iso-8859-2>');
    expect(sniffCharset(new Uint8Array(whole.buffer, whole.byteOffset + 21, 25), null)).toBe('iso-8859-2');
  });

  test('a page of nothing but openings takes no time', () => {
    const started = cpuNow();
    for (const piece of ['<', '<a ', '<!--', '<meta ', '<meta a', '</', '<a b="']) {
      sniffCharset(latin1(piece.repeat(100_000)), null);
    }
    expect(cpuNow() - started).toBeLessThan(1_000);
  });
});

describe('decodeText', () => {
  test.each([
    ['utf-8', '\xef\xbb\xbff\xc3\xbcr', 'für'],
    ['utf-8', 'f\xfcr', 'f\ufffdr'],
    ['windows-1252', '\x80 f\xfcr', '€ für'],
    ['windows-1252', 'plain', 'plain'],
    ['iso-8859-2', '\xb9', 'š'],
    ['shift_jis', '\x83c', 'ツ'],
    ['utf-16le', '\xff\xfeA\x00', 'A'],
    ['utf-16be', '\x00A', 'A'],
    ['iso-2022-jp', '\x1b$B%D\x1b(B', 'ツ'],
    ['nonsense', 'f\xc3\xbcr', 'für'],
  ])('%s', (encoding, bytes, text) => {
    expect(decodeText(latin1(bytes), encoding)).toBe(text);
  });
});
