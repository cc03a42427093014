import { describe, expect, test } from 'vitest';
import type { OriginCookies } from '../../../../src/core/batch/batch.ts';
import { LIMITS } from '../../../../src/core/limits.ts';
import { type BatchCookies, COOKIE_BYTES, openBatchCookies } from '../../../../src/worker/request/cookies.ts';

const ORIGIN = 'https://shop.example';
const open = (known: OriginCookies[] = []) => openBatchCookies(known);

function give(cookies: BatchCookies, ...lines: string[]): void {
  cookies.take(`${ORIGIN}/p/1`, 'a-1', [
    'Content-Type',
    'text/html',
    ...lines.flatMap((line) => ['Set-Cookie', line]),
  ]);
}

describe('cookies', () => {
  test('go back to where they came from, with their identity only', async () => {
    const cookies = await open();
    give(cookies, 'visit=1; Path=/; HttpOnly', 'deep=2; Path=/p', 'other=3; Path=/else');
    expect(cookies.headerFor(`${ORIGIN}/p/2`, 'a-1')).toBe('deep=2; visit=1');
    expect(cookies.headerFor(`${ORIGIN}/`, 'a-1')).toBe('visit=1');
    expect(cookies.headerFor(`${ORIGIN}/p/2`, 'a-2')).toBeNull();
    expect(cookies.headerFor(`${ORIGIN}/p/2`, null)).toBeNull();
  });

  test('leave neither scheme, host nor port', async () => {
    const cookies = await open();
    give(cookies, 'visit=1; Path=/', 'wide=2; Path=/; Domain=shop.example');
    for (const place of ['http://shop.example', 'https://shop.example:8443', 'https://www.shop.example'])
      expect(cookies.headerFor(`${place}/`, 'a-1')).toBeNull();
  });

  test('of another site, of a whole ending, or of nobody are not taken', async () => {
    const cookies = await open();
    give(cookies, 'a=1; Domain=other.example', 'b=1; Domain=com', '', '=', ';;;', '\u0000=\u0001', 'c');
    expect(cookies.headerFor(`${ORIGIN}/`, 'a-1')).toBeNull();
  });

  test('travel with a report and come back with a batch, as they were', async () => {
    const cookies = await open();
    give(cookies, 'visit=1; Path=/; Secure; Max-Age=3600', 'deep=2; Path=/p');
    const changes = cookies.takeChanges();
    expect(changes).toMatchObject([{ origin: ORIGIN, identity: 'a-1' }]);
    expect(
      changes[0]!.cookies.map(({ name, path, secure, hostOnly }) => [name, path, secure, hostOnly]),
    ).toEqual([
      ['visit', '/', true, true],
      ['deep', '/p', false, true],
    ]);
    expect(changes[0]!.cookies[0]!.expiresAt).toBeGreaterThan(Date.now() + 3_500_000);
    expect(changes[0]!.cookies[1]!.expiresAt).toBeNull();
    expect(cookies.takeChanges()).toEqual([]);

    const again = await open(JSON.parse(JSON.stringify(changes)));
    expect(again.headerFor(`${ORIGIN}/p/2`, 'a-1')).toBe('deep=2; visit=1');
    expect(again.takeChanges()).toEqual([]);
    give(again, 'visit=; Path=/; Max-Age=0', 'deep=3; Path=/p');
    const [later] = again.takeChanges();
    expect(later!.cookies.map(({ name, value }) => [name, value])).toEqual([['deep', '3']]);
  });

  test('that have expired do not come back', async () => {
    const past = {
      name: 'old',
      value: '1',
      domain: 'shop.example',
      path: '/',
      secure: false,
      hostOnly: true,
    };
    const cookies = await open([
      { origin: ORIGIN, identity: 'a-1', cookies: [{ ...past, expiresAt: Date.now() - 1_000 }] },
    ]);
    expect(cookies.headerFor(`${ORIGIN}/`, 'a-1')).toBeNull();
  });

  test('are few and small, whatever a site sends', async () => {
    const cookies = await open();
    const lines = Array.from({ length: 500 }, (_, index) => `c${index}=${'x'.repeat(100)}; Path=/`);
    give(cookies, ...lines, `huge=${'x'.repeat(COOKIE_BYTES)}`);
    for (let round = 0; round < 5; round++) give(cookies, ...lines.slice(round * 40, round * 40 + 40));
    const [jar] = cookies.takeChanges();
    expect(jar!.cookies.length).toBeLessThanOrEqual(LIMITS.cookiesPerJar);
    const bytes = jar!.cookies.reduce((sum, { name, value }) => sum + name.length + value.length, 0);
    expect(bytes).toBeLessThanOrEqual(LIMITS.cookieJarBytes);
  });
});
