import { PassThrough } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { parseJson, readLines } from '../../../src/server/api/requests/read-body.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const request = { headers: {} } as FastifyRequest;

test('a body of JSON that comes too slowly is cut off', async () => {
  const body = new PassThrough();
  const parsed = parseJson(request, body).catch((error: { code: string }) => error.code);
  body.write('{"url": ');
  vi.advanceTimersByTime(30_000);
  expect(await parsed).toBe('too-slow');
});

test('a list that goes silent is cut off, and one that only takes long is not', async () => {
  const body = new PassThrough();
  const lines = readLines(body);
  for (const line of ['a', 'b', 'c']) {
    const next = lines.next();
    vi.advanceTimersByTime(20_000);
    body.write(`${line}\n`);
    expect(await next).toEqual({ done: false, value: line });
  }
  const silent = lines.next().catch((error: { code: string }) => error.code);
  await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
  vi.advanceTimersByTime(30_000);
  expect(await silent).toBe('too-slow');
});
