import { describe, expect, test } from 'vitest';
import { compileTypes, extensionOf, mediaKey } from '../../../../src/core/media/media-file.ts';
import { sniffMediaType } from '../../../../src/core/media/media-type.ts';
import { largestOf } from '../../../../src/core/media/srcset.ts';
import { cpuNow } from '../../../support/cpu-time.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');

describe('the name of an object', () => {
  test.each([
    ['\xff\xd8\xff\xe0', 'jpg'],
    ['\x89PNG\r\n\x1a\n', 'png'],
    ['GIF89a', 'gif'],
    ['RIFF\0\0\0\0WEBP', 'webp'],
    ['\0\0\0\x1cftypavif', 'avif'],
    ['\xff\x0a\xfa\x1f', 'jxl'],
    ['\0\0\0\x0cJXL \r\n\x87\n', 'jxl'],
    ['\0\0\0\x0cjP  \r\n\x87\n', 'jp2'],
    ['8BPS\0\x01', 'psd'],
    ['<svg xmlns="http://www.w3.org/2000/svg">', 'svg'],
    ['\0\0\0\x1cftypisom', 'mp4'],
    ['\0\0\0\x1cftyp3gp5', '3gp'],
    ['\0\0\x01\xba\x44', 'mpg'],
    ['FLV\x01\x05', 'flv'],
    ['\x30\x26\xb2\x75\x8e\x66\xcf\x11', 'asf'],
    ['ID3\x04', 'mp3'],
    ['\xff\xf1\x50', 'aac'],
    ['FORM\0\0\0\0AIFF', 'aiff'],
    ['MThd\0\0\0\x06', 'mid'],
    ['OggS\0', 'ogg'],
    ['%PDF-1.7', 'pdf'],
    ['PK\x03\x04', 'zip'],
    ['wOF2\0\x01\0\0', 'woff2'],
    ['ttcf\0\x01\0\0', 'ttc'],
    ['just words', 'txt'],
    ['<!doctype html>', 'html'],
    ['\x01\x02\x03\x04', 'bin'],
    ['', 'bin'],
  ])('%j ends in .%s', (text, extension) => {
    expect(extensionOf(bytes(text))).toBe(extension);
  });

  test('comes from the hash of its bytes', () => {
    expect(mediaKey('abcdef', 'jpg')).toBe('media/ab/abcdef.jpg');
  });
});

test('a picture that has not the signature of its kind is none', () => {
  const noise = bytes('\x01\x02\x03\x04\x05');
  expect(sniffMediaType(noise, 'image/jpeg')).toBe('application/octet-stream');
  // Kinds that are not always recognised are taken at their word.
  expect(sniffMediaType(noise, 'image/x-raw')).toBe('image/x-raw');
});

test.each([
  [[], 'text/html', false],
  [[], 'image/png', true],
  [['text/html'], 'text/html', true],
  [['image/*'], 'image/png', true],
  [['image/*'], 'video/mp4', false],
  [['image/*'], 'image', false],
  [['Image/PNG', 'video/mp4'], 'image/png', true],
  [['image/png'], 'image/jpeg', false],
  [['*/*'], 'font/woff', true],
  [['image/*'], '', false],
])('the types %j and %s: %s', (globs, type, taken) => {
  expect(compileTypes(globs)(type)).toBe(taken);
});

describe('the largest of a srcset', () => {
  test.each([
    ['a.jpg 320w, b.jpg 1280w, c.jpg 640w', 'b.jpg'],
    ['a.jpg, b.jpg 2x, c.jpg 1.5x', 'b.jpg'],
    ['a.jpg', 'a.jpg'],
    [' a,b.jpg 2x , c.jpg 3x', 'c.jpg'],
    [
      'http://a.example/x,w_100/a.jpg 100w, http://a.example/x,w_200/a.jpg 200w',
      'http://a.example/x,w_200/a.jpg',
    ],
    ['a.jpg,b.jpg 2x', 'a.jpg,b.jpg'],
    ['a.jpg, ,, b.jpg 5x', 'b.jpg'],
    ['a.jpg nonsense, b.jpg 2x', 'b.jpg'],
    ['', null],
    [' , ', null],
  ])('%j is %s', (srcset, expected) => {
    expect(largestOf(srcset)).toBe(expected);
  });

  test('is found in time that grows with the text', () => {
    for (const text of [
      ', '.repeat(500_000),
      'a '.repeat(500_000),
      'a,'.repeat(500_000),
      'a 1x,'.repeat(200_000),
    ]) {
      const startedAt = cpuNow();
      largestOf(text);
      expect(cpuNow() - startedAt).toBeLessThan(1_000);
    }
  });
});
