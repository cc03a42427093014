import { PassThrough } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Bodies, readLines } from '../../../src/server/api/requests/read-body.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const request = { headers: {}, caller: { keyId: null }, bodyBytes: 0 } as FastifyRequest;

test('a body of JSON that comes too slowly is cut off', async () => {
  const body = new PassThrough();
  const parsed = new Bodies().json(request, body).catch((error: { code: string }) => error.code);
  body.write('{"url": ');
  vi.advanceTimersByTime(30_000);
  expect(await parsed).toBe('too-slow');
});

test('bodies share a limit, of which one key may have a part', async () => {
  const bodies = new Bodies({ bytesMax: 400, keyBytesMax: 200 });
  const send = (keyId: string, bytes: number) => {
    const sent = { headers: {}, caller: { keyId }, bodyBytes: 0 } as FastifyRequest;
    const body = new PassThrough().end('1'.padStart(bytes));
    return { sent, parsed: bodies.json(sent, body).catch((error: { code: string }) => error.code) };
  };
  const first = [send('a', 90), send('a', 90)];
  expect(await Promise.all(first.map(({ parsed }) => parsed))).toEqual([1, 1]);
  expect(await send('a', 30).parsed).toBe('too-many-open');
  const others = [send('b', 190), send('c', 20)];
  expect(await Promise.all(others.map(({ parsed }) => parsed))).toEqual([1, 1]);
  expect(await send('d', 20).parsed).toBe('busy');
  for (const { sent } of first) bodies.free(sent);
  expect(await send('a', 190).parsed).toBe(1);
});

test('few bodies of strangers are read at once', async () => {
  const bodies = new Bodies();
  const send = (body: PassThrough) => {
    const sent = { headers: {}, bodyBytes: 0 } as FastifyRequest;
    return bodies.json(sent, body).catch((error: { code: string }) => error.code);
  };
  const slow = Array.from({ length: 100 }, () => send(new PassThrough()));
  expect(await send(new PassThrough().end('1'))).toBe('busy');
  vi.advanceTimersByTime(5_000);
  expect(new Set(await Promise.all(slow))).toEqual(new Set(['too-slow']));
  expect(await send(new PassThrough().end('1'))).toBe(1);
});

test('a list that goes silent is cut off, and one that only takes long is not', async () => {
  const body = new PassThrough();
  const lines = readLines(body);
  for (const line of ['a', 'b', 'c']) {
    const next = lines.next();
    vi.advanceTimersByTime(20_000);
    body.write(`${line}\n`);
    expect(await next).toEqual({ done: false, value: [line] });
  }
  const silent = lines.next().catch((error: { code: string }) => error.code);
  await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
  vi.advanceTimersByTime(30_000);
  expect(await silent).toBe('too-slow');
});
