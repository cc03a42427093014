import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { StorageFullError } from '../../../src/core/errors.ts';
import type { Blobs } from '../../../src/ports/blobs.ts';
import { Database } from '../../../src/store/sqlite/connection/database.ts';
import { storeIn } from '../../../src/store/sqlite/sqlite-store.ts';
import { expectBalance } from '../../contract/store/store-setup.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { limitDatabase } from '../../support/full-database.ts';

const PAGES = 300;
const BATCH_SIZE = 10;
/** Of the dispatcher within this process. */
const SLOTS = 8;

/** A site with many pages that do not compress, and a job that wants them all. */
async function startSite(onRequest: (count: number) => void = () => {}) {
  const text = randomBytes(1_500).toString('base64');
  let requests = 0;
  const server = createServer((request, response) => {
    if (request.url === '/robots.txt') {
      response.writeHead(404).end();
      return;
    }
    onRequest(++requests);
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<title>${request.url}</title><p>${text}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const urls = Array.from({ length: PAGES }, (_, i) => `${origin}/page/${i}`);
  return {
    job: { sources: urls, batchSize: BATCH_SIZE, allowPrivate: true },
    count: () => requests,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Blobs in a place that takes `bytes` and no more, until `make` is called. */
function limitBlobs(blobs: Blobs, bytes: number) {
  let left = bytes;
  const take = (size: number) => {
    if (size > left) {
      throw new StorageFullError('the disk is full');
    }
    left -= size;
  };
  const limited: Blobs = {
    ...blobs,
    async put(key, content) {
      take(content.length);
      await blobs.put(key, content);
    },
    async write(key) {
      const writer = await blobs.write(key);
      return {
        get size() {
          return writer.size;
        },
        async append(content) {
          take(content.length);
          await writer.append(content);
        },
        commit: (as) => writer.commit(as),
        abort: () => writer.abort(),
      };
    },
  };
  const make = () => {
    left = Number.POSITIVE_INFINITY;
  };
  return { limited, make };
}

describe('a crawl without room', () => {
  test('for its pages waits, fetches nothing meanwhile, and goes on by itself', async () => {
    const site = await startSite();
    const warnings: string[] = [];
    let requestsBefore = 0;
    let requestsAfter = 0;
    let probes = 0;
    try {
      const { state, counters } = await crawl(site.job, {
        onWarning: (message) => void warnings.push(message),
        blobsOver: (blobs) => {
          const { limited, make } = limitBlobs(blobs, 100_000);
          return {
            ...limited,
            async put(key, content) {
              probes++;
              if (probes === 1) requestsBefore = site.count();
              if (probes === 2) requestsAfter = site.count();
              if (probes === 2) make();
              await limited.put(key, content);
            },
          };
        },
        inspect: ({ store, job }) => expectBalance(store, job),
      });
      expect({ state, done: counters.done, dead: counters.dead }).toEqual({
        state: 'done',
        done: PAGES,
        dead: 0,
      });
      expect(requestsBefore).toBe(requestsAfter);
      // What was under way when the disk was full, and not again and again.
      expect(site.count()).toBeLessThanOrEqual(PAGES + SLOTS * BATCH_SIZE);
      expect(warnings.filter((text) => text.includes('waiting until there is room'))).toEqual([
        'cannot write the archive: the disk is full; waiting until there is room',
      ]);
      expect(warnings.at(-1)).toMatch(/results can be stored again, after \d+ s/);
    } finally {
      await site.close();
    }
  });

  test('for its state waits, loses nothing and fetches nothing twice', async () => {
    let db: Database | null = null;
    let room: { make(): void } | null = null;
    const site = await startSite((count) => {
      if (count === 100) room = limitDatabase(db!);
    });
    const warnings: string[] = [];
    try {
      const { state, counters } = await crawl(site.job, {
        storeIn(path) {
          db = new Database(path);
          return storeIn(db);
        },
        onWarning(message) {
          warnings.push(message);
          if (message.includes('waiting until there is room')) room!.make();
        },
        inspect: ({ store, job }) => expectBalance(store, job),
      });
      expect({ state, done: counters.done, dead: counters.dead }).toEqual({
        state: 'done',
        done: PAGES,
        dead: 0,
      });
      expect(site.count()).toBe(PAGES);
      expect(warnings).toEqual([
        expect.stringMatching(/^the disk of .*seine\.db is full; waiting until there is room$/),
        expect.stringMatching(/^the store has room again, after \d+ s$/),
      ]);
    } finally {
      await site.close();
    }
  });

  test('on a disk that is nearly full sends nothing before there is more', async () => {
    const site = await startSite();
    let free = 10;
    let requestsBefore = -1;
    try {
      const { state, counters } = await crawl(site.job, {
        diskFree: async () => free,
        onWarning(message) {
          if (!message.startsWith('only 10 bytes free on the disk')) return;
          requestsBefore = site.count();
          free = 1e12;
        },
      });
      expect({ state, done: counters.done }).toEqual({ state: 'done', done: PAGES });
      expect(requestsBefore).toBe(0);
    } finally {
      await site.close();
    }
  });
});
