import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { openS3Blobs } from '../../../src/blobs/s3-blobs.ts';
import type { Blobs } from '../../../src/ports/blobs.ts';
import { type Fault, type FaultProxy, startFaultProxy } from '../../support/servers/fault-proxy.ts';
import { S3_ENV, type S3Server, startS3Server } from '../../support/servers/s3-server.ts';

/** Whatever the network does: what is committed is there and whole, and a commit fails only if it is not. */

const SMALL = 20_000;
/** Three parts. */
const LARGE = 150_000;

/** A store of its own for each test, so that all can wait at the same time. */
class Stage {
  readonly server: S3Server;
  readonly proxy: FaultProxy;
  /** Through the proxy, and past it. */
  readonly blobs: Blobs;
  readonly judge: Blobs;

  constructor(server: S3Server, proxy: FaultProxy) {
    this.server = server;
    this.proxy = proxy;
    const url = `s3://${server.bucket}/faults`;
    const at = (endpoint: string) => ({ endpoint, region: null, pathStyle: null });
    // As many attempts as ever, a twentieth of the time between them: `s3-patience.test.ts` has the real waits.
    const waits = { firstMs: 5, throttledMs: 20, longestMs: 250 };
    this.blobs = openS3Blobs(url, { ...at(proxy.endpoint), waits }, { partBytes: 64 * 1024 });
    this.judge = openS3Blobs(url, at(server.endpoint));
  }

  async write(bytes: Buffer): Promise<{ key: string; committed: boolean; error: unknown }> {
    const key = `media/${createHash('sha256').update(bytes).digest('hex')}`;
    const writer = await this.blobs.write('media/unnamed');
    try {
      for (let at = 0; at < bytes.length; at += 10_000) await writer.append(bytes.subarray(at, at + 10_000));
      await writer.commit(key);
      return { key, committed: true, error: null };
    } catch (error) {
      await writer.abort().catch(() => {});
      return { key, committed: false, error };
    }
  }

  /** Writes one blob under a plan and checks that the commit told the truth. */
  async writeUnder(bytes: number, plan: (request: string, earlier: number) => Fault) {
    this.proxy.plan(plan);
    const content = randomBytes(bytes);
    const result = await this.write(content);
    const stored = await this.judge.read(result.key);
    expect(stored === null || stored.equals(content)).toBe(true);
    expect(result.committed, String(result.error)).toBe(stored !== null);
    return result;
  }

  count(fault: Fault): number {
    return this.proxy.log.filter((entry) => entry.fault === fault).length;
  }
}

async function onStage(act: (stage: Stage) => Promise<void>): Promise<void> {
  const server = await startS3Server();
  const proxy = await startFaultProxy(server);
  const stage = new Stage(server, proxy);
  try {
    await act(stage);
  } finally {
    await Promise.all([stage.blobs.close(), stage.judge.close()]);
    await proxy.close();
    await server.close();
  }
}

beforeAll(() => void Object.assign(process.env, S3_ENV));

const isPart = (request: string) => request.includes('partNumber=');
const isBegin = (request: string) => request.startsWith('POST ') && request.includes('?uploads');
const isComplete = (request: string) => request.startsWith('POST ') && request.includes('?uploadId=');
const isFinal = (request: string) => request.startsWith('PUT ') && !isPart(request);

describe('S3 under faults', () => {
  test.concurrent('a latency of seconds only costs time', () =>
    onStage(async (stage) => {
      const { committed } = await stage.writeUnder(SMALL, () => ({ delayMs: 2_000 }));
      expect(committed).toBe(true);
    }));

  test.concurrent('a third of all requests answered with 503: everything arrives', () =>
    onStage(async (stage) => {
      let state = 7;
      stage.proxy.plan((_, earlier) => {
        state = (state * 48_271) % 2_147_483_647;
        // No more than four times in a row: with more, one of so many requests could run out of attempts.
        return earlier < 4 && state / 2_147_483_647 < 0.3 ? { status: 503, code: 'SlowDown' } : 'none';
      });
      const contents = Array.from({ length: 60 }, (_, i) => randomBytes(i % 8 === 0 ? LARGE : SMALL));
      const check = async (content: Buffer) => {
        const { key, committed } = await stage.write(content);
        expect(committed).toBe(true);
        expect((await stage.judge.read(key))?.equals(content)).toBe(true);
        expect((await stage.blobs.read(key))?.equals(content)).toBe(true);
      };
      await Promise.all(contents.map(check));
      expect(stage.proxy.log.length - stage.count('none')).toBeGreaterThan(20);
      expect(await stage.server.uploads()).toEqual([]);
    }));

  test.concurrent.each([
    ['a PUT', SMALL, isFinal],
    ['a part', LARGE, isPart],
    ['the copy', LARGE, isFinal],
  ])('%s broken off in the middle is sent again', (_, bytes, hit) =>
    onStage(async (stage) => {
      const { committed } = await stage.writeUnder(bytes, (request, earlier) =>
        hit(request) && earlier < 2 ? 'reset-request' : 'none',
      );
      expect(committed).toBe(true);
      expect(stage.count('reset-request')).toBeGreaterThanOrEqual(2);
    }),
  );

  test.concurrent.each([
    ['of a PUT', SMALL, isFinal],
    ['of the beginning of an upload', LARGE, isBegin],
    ['of a part', LARGE, isPart],
    ['of the completion', LARGE, isComplete],
    ['of the copy', LARGE, isFinal],
  ])('a lost reply %s does no harm', (_, bytes, hit) =>
    onStage(async (stage) => {
      const { committed } = await stage.writeUnder(bytes, (request, earlier) =>
        hit(request) && earlier === 0 ? 'lose-reply' : 'none',
      );
      expect(committed).toBe(true);
      expect(stage.count('lose-reply')).toBeGreaterThan(0);
    }),
  );

  test.concurrent.each([
    ['of a PUT', SMALL, isFinal],
    ['of the completion', LARGE, isComplete],
    ['of the copy', LARGE, isFinal],
  ])('every reply %s lost: what was stored counts as stored', (_, bytes, hit) =>
    onStage(async (stage) => {
      const { committed } = await stage.writeUnder(bytes, (request) =>
        hit(request) ? 'lose-reply' : 'none',
      );
      expect(committed).toBe(true);
    }),
  );

  test.concurrent.each([
    ['a PUT', SMALL, isFinal],
    ['a part', LARGE, isPart],
    ['the copy', LARGE, isFinal],
  ])('%s that never arrives fails the commit in a sentence, and leaves nothing', (_, bytes, hit) =>
    onStage(async (stage) => {
      const { committed, error } = await stage.writeUnder(bytes, (request) =>
        hit(request) ? 'reset-request' : 'none',
      );
      expect(committed).toBe(false);
      expect(String(error)).toMatch(/cannot reach S3 at \S+127\.0\.0\.1:\d+: (ECONNRESET|EPIPE)/);
      for await (const entry of stage.judge.list('')) expect(entry).toBeNull();
      expect(await stage.server.uploads()).toEqual([]);
      expect(await stage.server.keys()).toEqual([]);
    }),
  );

  test.concurrent('requests that fail together do not use up the patience of each other', () =>
    onStage(async (stage) => {
      stage.proxy.plan((_, earlier) => (earlier < 3 ? 'reset-request' : 'none'));
      const contents = Array.from({ length: 50 }, () => randomBytes(SMALL));
      const results = await Promise.all(contents.map((content) => stage.write(content)));
      expect(results.filter(({ committed }) => !committed)).toEqual([]);
    }));

  test.concurrent('a reply that breaks off while it is read is continued', () =>
    onStage(async (stage) => {
      const content = randomBytes(3_000_000);
      await stage.judge.put('read', content);
      stage.proxy.plan((_, earlier) => (earlier < 2 ? 'cut-reply' : 'none'));
      expect((await stage.blobs.read('read'))?.equals(content)).toBe(true);
      const range = await stage.blobs.read('read', { offset: 1_000, length: 2_000_000 });
      expect(range?.equals(content.subarray(1_000, 2_001_000))).toBe(true);
      expect(stage.count('cut-reply')).toBeGreaterThanOrEqual(2);
    }));
});
