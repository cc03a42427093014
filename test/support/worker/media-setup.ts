import { hash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import type { BatchTask, Report } from '../../../src/core/batch/batch.ts';
import { WIRE_VERSION } from '../../../src/core/batch/batch.ts';
import type { Outcome, StoredPage } from '../../../src/core/batch/outcome.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import { openHttpFetcher } from '../../../src/fetch/http/http-fetcher.ts';
import type { Blobs } from '../../../src/ports/blobs.ts';
import { processBatch } from '../../../src/worker/batch/process-batch.ts';
import { JobCache } from '../../../src/worker/compile-job.ts';
import { specOf, temporaryFolder } from '../fixtures.ts';
import { realClock } from '../real-clock.ts';
import { openRawOrigin, type RawHandler, type RawOrigin } from '../servers/raw-origin.ts';

/** A worker with a folder and an origin, to give batches of objects to. */
export interface MediaSetup {
  origin: RawOrigin;
  dir: string;
  blobs: Blobs;
  /** All parts of the report of one batch, one task for each path. */
  run(paths: string[], options?: RunOptions): Promise<Report[]>;
  /** Files of the folder, its temporary ones too. */
  files(): Promise<string[]>;
  close(): Promise<void>;
}

interface RunOptions {
  spec?: Partial<JobInput>;
  task?: Partial<BatchTask>;
  blobs?: Blobs;
}

const MEDIA_ROUTES: JobInput['routes'] = [{ name: 'media', kind: 'media' }];

export async function openMediaSetup(handlers: Record<string, RawHandler>): Promise<MediaSetup> {
  const origin = await openRawOrigin(handlers);
  const folder = await temporaryFolder();
  const fetcher = openHttpFetcher({ clock: realClock, isPublicAddress: () => false });
  const blobs = await openFolderBlobs(folder.dir);
  let batches = 0;
  return {
    origin,
    dir: folder.dir,
    blobs,
    async run(paths, options = {}) {
      const id = ++batches;
      const spec = specOf({
        routes: MEDIA_ROUTES,
        allowPrivate: true,
        retry: { attempts: 1 },
        ...options.spec,
      });
      const startAt = realClock.now();
      const host = new URL(origin.url).host;
      const parts: Report[] = [];
      const last = await processBatch(
        {
          version: WIRE_VERSION,
          id,
          job: { id: 1, name: 'test', specHash: JSON.stringify(spec), spec, bundle: null, epoch: 'e1' },
          needs: 'http',
          budgetMs: 30_000,
          permits: [{ host, startAt, endAt: startAt + 60_000, gapMs: 0, parallel: 4 }],
          robots: [],
          tasks: paths.map((path, index) => ({
            id: index + 1,
            url: path.startsWith('http') ? path : origin.url + path,
            permit: 0,
            depth: 0,
            route: null,
            attempt: 1,
            hops: 0,
            meta: null,
            lastVisit: null,
            ...options.task,
          })),
          archiveKey: `warc/test-1/${id}`,
          packKey: `shards/test-1/${id}`,
        },
        {
          name: 'media',
          fetcher,
          blobs: options.blobs ?? blobs,
          clock: realClock,
          jobs: new JobCache(async () => new Map()),
        },
        { onPart: (part) => parts.push(part) },
      );
      return [...parts, last];
    },
    async files() {
      const entries = await readdir(folder.dir, { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(folder.dir.length + 1))
        .sort();
    },
    async close() {
      await fetcher.close();
      await blobs.close();
      await origin.close();
      await folder.remove();
    },
  };
}

/** Outcomes in the order of their tasks, whatever order they came in. */
export function outcomesOf(parts: Report[]): Outcome[] {
  return parts.flatMap(({ outcomes }) => outcomes).sort((a, b) => a.taskId - b.taskId);
}

export function pagesOf(parts: Report[]): StoredPage[] {
  return outcomesOf(parts).map((outcome) => {
    if (!('page' in outcome) || outcome.page === null) throw new Error(`no page: ${JSON.stringify(outcome)}`);
    return outcome.page;
  });
}

export const sha256 = (bytes: Buffer) => hash('sha256', bytes, 'hex');
export const md5 = (bytes: Buffer) => hash('md5', bytes, 'hex');

/** Bytes that begin like a JPEG and do not compress, different for each seed. */
export function pictureOf(seed: number, bytes: number): Buffer {
  const picture = Buffer.alloc(bytes);
  let state = (seed + 1) * 2_654_435_761;
  for (let at = 0; at < bytes; at += 4) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
    picture.writeInt32LE(state | 0, Math.min(at, bytes - 4));
  }
  picture.set([0xff, 0xd8, 0xff, 0xe0]);
  return picture;
}
