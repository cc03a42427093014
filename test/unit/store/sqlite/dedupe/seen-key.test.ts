import { expect, test } from 'vitest';
import { fingerprint } from '../../../../../src/core/url/fingerprint.ts';
import { keyOf, NEIGHBOUR_SEEDS } from '../../../../../src/store/sqlite/dedupe/seen-key.ts';

const SEED = NEIGHBOUR_SEEDS + 12_345;
const upper = (url: string, seed = SEED) => Math.floor(keyOf(url, seed) / 2 ** 30);

test('keys stay as they are: folders have them written down', () => {
  const url = 'https://shop.example/c-7/p-123456.html?page=2';
  expect(keyOf(url, 12_345)).toBe(fingerprint(url, 'shop.example', 12_345));
  expect([keyOf(url, SEED), keyOf('https://a.example/', SEED)]).toEqual([3899433384101521, 7286611571630337]);
});

test('URLs whose numbers follow each other lie side by side, within their host', () => {
  const neighbours = ['/c-7/p-123456.html', '/c-8/p-123457.html', '/c-123/p-123499.html'];
  const places = neighbours.map((path) => upper(`https://shop.example${path}`));
  expect(new Set(places).size).toBe(1);
  const others = Array.from({ length: 50 }, (_, n) =>
    upper(`https://shop.example/c-7/p-${1_234 + n}00.html`),
  );
  expect(new Set(others).size).toBeGreaterThan(40);
  const hosts = new Set([...others, ...places].map((place) => Math.floor(place / 2 ** 9)));
  expect(hosts.size).toBe(1);
  const elsewhere = Array.from({ length: 50 }, (_, n) =>
    upper(`https://host-${n}.example/c-7/p-123456.html`),
  );
  expect(new Set(elsewhere.map((place) => Math.floor(place / 2 ** 9))).size).toBeGreaterThan(45);
});

test('keys are safe whole numbers, hardly ever shared, whatever the URL looks like', () => {
  const urls = Array.from({ length: 40_000 }, (_, n) => [
    `https://a.example/${n}`,
    `https://a.example/0123456789/${n}`,
    `https://a.example/${n.toString(36)}-slug/é/`,
    `https://a.example/?day=2024-01-${n}&v=1`,
    `https://a.example/v/${n}/clip.mp4`,
  ]).flat();
  const keys = urls.map((url) => keyOf(url, SEED));
  expect(keys.every((key) => Number.isSafeInteger(key) && key >= 0)).toBe(true);
  expect(urls.length - new Set(keys).size).toBeLessThan(60);
  expect(keyOf('https://a.example/1', SEED)).not.toBe(keyOf('https://a.example/1', SEED + 1));
});
