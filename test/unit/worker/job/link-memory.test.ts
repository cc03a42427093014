import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { LinkMemory, ORIGINS_REMEMBERED_MAX } from '../../../../src/worker/job/link-memory.ts';
import { type LinkOrigin, linksOf } from '../../../../src/worker/native-links/native-links.ts';

const A = 'https://a.example';

/** A link in the middle of a page, as the scanner meets it. */
function inPage(link: string): [Buffer, number, number] {
  return [Buffer.from(`<a href="${link}">${link}</a>`), 9, 9 + Buffer.byteLength(link)];
}

function remember(origin: LinkOrigin, page: Buffer, start: number, end: number): void {
  linksOf(page).remember(start, end, origin);
}

function knows(origin: LinkOrigin, page: Buffer, start: number, end: number): boolean {
  return linksOf(page).knows(start, end, origin);
}

describe('link memory', () => {
  test('knows what was remembered, for its origin, and nothing else', () => {
    const link = fc.string({ unit: fc.constantFrom('/', 'a', 'b', '?', '=', '&', '1', 'é'), maxLength: 6 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(2), link), { maxLength: 40 }),
        fc.array(fc.tuple(fc.nat(2), link)),
        (remembered, asked) => {
          const memory = new LinkMemory('e1');
          const known = new Set<string>();
          for (const [origin, text] of remembered) {
            remember(memory.of(`https://h${origin}`), ...inPage(text));
            known.add(`${origin} ${text}`);
          }
          for (const [origin, text] of [...remembered, ...asked]) {
            expect(knows(memory.of(`https://h${origin}`), ...inPage(text))).toBe(
              known.has(`${origin} ${text}`),
            );
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  test('looks at the given place only', () => {
    const links = new LinkMemory().of(A);
    remember(links, Buffer.from('/product'), 0, 8);
    expect(knows(links, Buffer.from('/products'), 0, 9)).toBe(false);
    expect(knows(links, Buffer.from('/products'), 0, 8)).toBe(true);
    expect(knows(links, Buffer.from('x/product'), 1, 9)).toBe(true);
    expect(knows(links, Buffer.from('/produc'), 0, 7)).toBe(false);
  });

  test('handles taken before and after see the same', () => {
    const memory = new LinkMemory();
    const before = memory.of(A);
    remember(memory.of(A), ...inPage('/x'));
    expect(knows(before, ...inPage('/x'))).toBe(true);
    expect(knows(memory.of('http://a.example'), ...inPage('/x'))).toBe(false);
  });

  test('forgets the oldest, keeps the newest, and stays bounded', () => {
    const links = new LinkMemory().of(A);
    const total = LIMITS.recentUrlsMax * 2 + 10;
    for (let number = 0; number < total; number++) remember(links, ...inPage(`/p/${number}`));
    expect(knows(links, ...inPage(`/p/${total - 1}`))).toBe(true);
    expect(knows(links, ...inPage(`/p/${total - LIMITS.recentUrlsMax}`))).toBe(true);
    expect(knows(links, ...inPage('/p/0'))).toBe(false);
  });

  test('origins that were forgotten do not inherit the links of others', () => {
    const memory = new LinkMemory();
    remember(memory.of('https://first.example'), ...inPage('/x'));
    for (let number = 0; number < ORIGINS_REMEMBERED_MAX + 5; number++) {
      expect(knows(memory.of(`https://h${number}.example`), ...inPage('/x'))).toBe(false);
    }
  });

  test('an epoch starts with nothing', () => {
    expect(new LinkMemory('e2').epoch).toBe('e2');
    expect(knows(new LinkMemory('e2').of(A), ...inPage('/x'))).toBe(false);
  });
});
