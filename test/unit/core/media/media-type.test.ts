import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isHtml, sniffMediaType } from '../../../../src/core/media/media-type.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const sniff = (text: string, declared: string | null = null) => sniffMediaType(bytes(text), declared);

const PNG = '\x89PNG\r\n\x1a\n\0\0\0\rIHDR';
const PAGE = '<!DOCTYPE html><html><head><title>x</title>';
const XML = '<?xml version="1.0"?>\n';

describe('from the bytes', () => {
  test.each([
    [PAGE, 'text/html'],
    ['\n  <HTML lang=en>', 'text/html'],
    ['\xef\xbb\xbf<!doctype HTML>', 'text/html'],
    ['<!-- hello --><p>', 'text/html'],
    ['<div>', 'text/html'],
    ['\xff\xfe<\0!\0d\0o\0c\0t\0y\0p\0e\0 \0h\0t\0m\0l\0>\0', 'text/html'],
    [`${XML}<a/>`, 'application/xml'],
    [`${XML}<!-- c --><rss version="2.0">`, 'application/rss+xml'],
    ['<rss version="2.0">', 'application/rss+xml'],
    [`${XML}<feed xmlns="http://www.w3.org/2005/Atom">`, 'application/atom+xml'],
    [`${XML}<urlset>`, 'application/xml'],
    [`${XML}<html xmlns="http://www.w3.org/1999/xhtml">`, 'application/xhtml+xml'],
    ['<svg xmlns="http://www.w3.org/2000/svg">', 'image/svg+xml'],
    [' {"a": 1}', 'application/json'],
    ['[{"a": 1}]', 'application/json'],
    ['{}', 'application/json'],
    ['[1, 2]', 'application/json'],
    ['[section]\nkey=value', 'text/plain'],
    ['{ color: red }', 'text/plain'],
    ['%PDF-1.7\n', 'application/pdf'],
    [PNG, 'image/png'],
    ['\xff\xd8\xff\xe0\0\x10JFIF', 'image/jpeg'],
    ['GIF89a\x01\0', 'image/gif'],
    ['RIFF\x10\0\0\0WEBPVP8 ', 'image/webp'],
    ['RIFF\x10\0\0\0WAVEfmt ', 'audio/wav'],
    ['\0\0\0\x1cftypavif', 'image/avif'],
    ['\0\0\0\x1cftypisom', 'video/mp4'],
    ['\0\0\0\x1cftypM4A ', 'audio/mp4'],
    ['BM\x36\x10\0\0\0\0\0\0', 'image/bmp'],
    ['BMW makes cars', 'text/plain'],
    ['\0\0\x01\0\x01\0', 'image/x-icon'],
    ['\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm', 'video/webm'],
    ['\x1a\x45\xdf\xa3\x9f\x42\x82\x88matroska', 'video/x-matroska'],
    ['ID3\x04\0', 'audio/mpeg'],
    ['\xff\xfb\x90\x44', 'audio/mpeg'],
    ['OggS\0\x02', 'application/ogg'],
    ['fLaC\0\0', 'audio/flac'],
    ['PK\x03\x04\x14\0', 'application/zip'],
    ['\x1f\x8b\x08\0', 'application/gzip'],
    ['\x28\xb5\x2f\xfd\x04', 'application/zstd'],
    [`${'\0'.repeat(257)}ustar\x0000`, 'application/x-tar'],
    ['\0asm\x01\0\0\0', 'application/wasm'],
    ['wOFF\0\x01\0\0', 'font/woff'],
    ['wOF2\0\x01\0\0', 'font/woff2'],
    ['just words, f\xfcr you', 'text/plain'],
    ['\x00\x01\x02\x03', 'application/octet-stream'],
  ])('%j', (text, expected) => {
    expect(sniff(text)).toBe(expected);
    // A header that says nothing changes nothing.
    expect(sniff(text, 'application/octet-stream')).toBe(expected);
    expect(sniff(text, 'nonsense')).toBe(expected);
  });
});

describe('with a header', () => {
  test.each([
    ['a page', PAGE, 'Text/HTML; charset=utf-8', 'text/html'],
    ['XHTML', PAGE, 'application/xhtml+xml', 'application/xhtml+xml'],
    ['a page that starts with words', 'Hello <b>you</b>', 'text/html', 'text/html'],
    ['a picture said to be a page', PNG, 'text/html', 'image/png'],
    ['a page said to be a picture', PAGE, 'image/png', 'text/html'],
    ['words said to be a picture', 'Not found', 'image/jpeg', 'text/plain'],
    ['one picture said to be another', PNG, 'image/jpeg', 'image/png'],
    ['a style sheet', 'a{}', 'text/css', 'text/css'],
    ['a style sheet that starts with a tag name', '<!-- a{} -->', 'text/css', 'text/css'],
    ['a page said to be a style sheet', PAGE, 'text/css', 'text/html'],
    ['a script', '{"a":1}', 'text/javascript', 'text/javascript'],
    ['linked data', '{"@context":1}', 'application/ld+json', 'application/ld+json'],
    ['data said to be a page', '{"a": 1}', 'text/html', 'application/json'],
    ['a page said to be data', PAGE, 'application/json', 'text/html'],
    ['a page after comments, said to be data', `<!-- a --> <!----> ${PAGE}`, 'application/json', 'text/html'],
    ['XHTML said to be a page', `${XML}<!DOCTYPE html PUBLIC "x">`, 'text/html', 'text/html'],
    [
      'comments without end, said to be data',
      '<!---->'.repeat(1_000),
      'application/json',
      'application/json',
    ],
    ['the source of a page', PAGE, 'text/plain', 'text/plain'],
    ['bytes said to be text', 'a\0b', 'text/plain', 'application/octet-stream'],
    ['a feed said to be a page', `${XML}<rss>`, 'text/html', 'application/rss+xml'],
    ['a feed said to be XML', `${XML}<rss>`, 'text/xml', 'application/rss+xml'],
    ['a kind of XML', `${XML}<a/>`, 'application/gpx+xml', 'application/gpx+xml'],
    ['a page said to be XML', PAGE, 'application/xml', 'text/html'],
    ['a picture said to be a drawing', PNG, 'image/svg+xml', 'image/png'],
    ['a drawing', '<svg>', 'image/svg+xml', 'image/svg+xml'],
    ['a zip that is a book', 'PK\x03\x04', 'application/epub+zip', 'application/epub+zip'],
    ['a zip said to be a page', 'PK\x03\x04', 'text/html', 'application/zip'],
    ['sound in Ogg', 'OggS\0', 'audio/ogg', 'audio/ogg'],
    ['sound in MP4', '\0\0\0\x1cftypisom', 'audio/mp4', 'audio/mp4'],
    ['a type of its own', '\x01\x02\x03', 'application/vnd.example', 'application/vnd.example'],
  ])('%s', (_, text, declared, expected) => {
    expect(sniff(text, declared)).toBe(expected);
  });

  test('an empty body', () => {
    expect(sniff('')).toBeNull();
    expect(sniff('', 'text/html; charset=utf-8')).toBe('text/html');
    expect(sniff('', 'application/octet-stream')).toBe('application/octet-stream');
  });
});

test('isHtml', () => {
  expect(['text/html', 'application/xhtml+xml', 'text/plain', null].map(isHtml)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test('any bytes and any header give a type', () => {
  const header = fc.oneof(fc.constantFrom(null, 'text/html', 'image/png', 'text/plain'), fc.string());
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), header, (body, declared) => {
      expect(sniffMediaType(body, declared)).toMatch(/^[^\s/;A-Z]+\/[^\s/;A-Z]+$/);
    }),
  );
});
