import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  FAST_BYTES_MAX,
  gzipFast,
  gzipStored,
  gzipWithZlib,
  roomFor,
} from '../../../../src/core/warc/gzip.ts';

/** Text that the code suits, so that the fast way is taken whatever the bytes under test are. */
const LATIN = Buffer.from('the text of a page');

function roundTrip(bytes: Buffer): void {
  const member = gzipFast(bytes, LATIN);
  expect(member).not.toBeNull();
  expect(gunzipSync(member!).equals(bytes)).toBe(true);
}

describe('gzipFast', () => {
  test('any bytes come back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3_000 }), (bytes) => roundTrip(Buffer.from(bytes))),
      { numRuns: 300 },
    );
  });

  test('bytes with many repeats of every length and distance come back', () => {
    const piece = fc.record({
      fresh: fc.uint8Array({ minLength: 1, maxLength: 40 }),
      back: fc.integer({ min: 1, max: 40_000 }),
      length: fc.integer({ min: 0, max: 700 }),
    });
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 200 }), (pieces) => {
        const bytes: number[] = [];
        for (const { fresh, back, length } of pieces) {
          bytes.push(...fresh);
          for (let i = 0; i < length; i++) bytes.push(bytes[Math.max(0, bytes.length - back)]!);
        }
        roundTrip(Buffer.from(bytes));
      }),
      { numRuns: 200 },
    );
  });

  test('every match length and the edges of the window come back', () => {
    const phrase = randomBytes(300);
    for (let length = 1; length <= 300; length++) {
      roundTrip(Buffer.concat([phrase, Buffer.from('#'), phrase.subarray(0, length), randomBytes(16)]));
    }
    for (const gap of [32_700, 32_759, 32_760, 32_761, 32_767, 32_768, 32_769, 40_000]) {
      roundTrip(
        Buffer.concat([phrase.subarray(0, 8), randomBytes(gap), phrase.subarray(0, 8), randomBytes(20)]),
      );
    }
  });

  test.each([0, 1, 2, 7, 8, 9, 65_535, 65_536, FAST_BYTES_MAX])('%i bytes come back', (size) => {
    roundTrip(Buffer.alloc(size, 0x61));
    roundTrip(randomBytes(size));
  });

  test('what an earlier record left behind is never referred to', () => {
    const page = Buffer.from('<li class="item"><a href="/product/17">Seventeen</a></li>\n'.repeat(40));
    for (let i = 0; i < 200; i++) roundTrip(page.subarray(i));
  });

  test('bytes give the same member, whether they were written where they are compressed or elsewhere', () => {
    const page = Buffer.from('<p>one text, in two places</p>'.repeat(30));
    const elsewhere = Buffer.from(gzipFast(page, page)!);
    const room = roomFor(page.length);
    room.set(page);
    expect(gzipFast(room, page)!.equals(elsewhere)).toBe(true);
  });

  test('refuses what suits zlib better', () => {
    const cyrillic = Buffer.from('Широкая электрификация южных губерний. '.repeat(50));
    expect(gzipFast(cyrillic, cyrillic)).toBeNull();
    const noise = randomBytes(4_000);
    expect(gzipFast(noise, noise)).toBeNull();
    const large = Buffer.alloc(FAST_BYTES_MAX + 1, 0x61);
    expect(gzipFast(large, large)).toBeNull();
  });

  test('HTML becomes at most 1.2 times as large as with zlib at level 1', () => {
    const words =
      'about after again along another because before between business could country different every example found from great having house important large letter little never number often other people place public question right school service should small special state still system table their there these thing think those three through under water where which while without world would write year'.split(
        ' ',
      );
    let seed = 1;
    const next = (below: number) => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return (seed >>> 8) % below;
    };
    const say = (count: number) => Array.from({ length: count }, () => words[next(words.length)]).join(' ');
    const rows = Array.from(
      { length: 60 },
      () =>
        `<li class="card"><a href="/product/${next(20_000)}">${say(4)}</a>\n  <p>${say(30)}</p> <b>${next(500)}.95 EUR</b></li>`,
    );
    const page = Buffer.from(`<!doctype html><html><body><ul>\n${rows.join('\n')}\n</ul></body></html>`);
    expect(gzipFast(page, page)!.length).toBeLessThan(1.2 * gzipWithZlib(page).length);
  });
});

test.each([0, 1, 65_535, 65_536, 200_000])('a stored member of %i bytes comes back', (size) => {
  const bytes = randomBytes(size);
  const member = gzipStored(bytes);
  expect(gunzipSync(member).equals(bytes)).toBe(true);
  expect(member.length).toBeLessThan(size + 50);
});
