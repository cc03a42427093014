import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import { Coordinator } from '../../../src/coordinator/coordinator.ts';
import { archiveKeyOf } from '../../../src/coordinator/plan/open-batch.ts';
import { createProgress } from '../../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../../src/coordinator/sources/source-feeder.ts';
import type { Batch, Report } from '../../../src/core/batch/batch.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import type { Handover, Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import {
  codeOf,
  collect,
  enqueue,
  leaseOne,
  pageOf,
  taskOf,
  temporaryFolder,
  traceOf,
} from '../../support/fixtures.ts';
import { realClock } from '../../support/real-clock.ts';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

interface TakenOver {
  /** Heard before the batch is told to be lost; without one the job is left as it is. */
  hearsReport: boolean;
  /** `later`: when the coordinator has looked around a few times. */
  storeOver?: (store: Store, later: Promise<void>) => void;
}

/** Looks of a coordinator, of which there are four in a second. */
const LOOKS = 4;

/**
 * A job whose coordinator ended while a worker had its only batch. The worker has written its pages, and the next coordinator
 * hears that it is lost.
 */
async function takeOver({ hearsReport, storeOver }: TakenOver) {
  const folder = await temporaryFolder();
  const store = openSqliteStore(join(folder.dir, 'seine.db'), { sync: 'normal', checkpointThread: false });
  const blobs = await openFolderBlobs(folder.dir);
  try {
    const job = await store.jobs.create({
      ...codeOf('job', { politeness: { rate: 'max', robots: false } }),
      ...{ name: 'job', now: Date.now() },
    });
    await enqueue(store, job, [taskOf('https://a.example/1')]);
    const { id, tasks } = await leaseOne(store, job, { now: Date.now(), leaseMs: 60_000 });
    const permit = {
      ...{ host: 'a.example', startAt: Date.now(), endAt: Date.now() + 1_000 },
      ...{ gapMs: 0, jitter: 0, parallel: 1 },
    };
    const handover: Handover = {
      ...{ epoch: 'e', needs: 'http', permits: [permit], robots: [] },
      tasks: tasks.map((task) => ({ id: task.id, permit: 0 })),
    };
    await store.frontier.noteSent(id, { replyTo: 'the one before', handover });
    const key = `${archiveKeyOf(job, id)}-0.warc.gz`;
    await blobs.put(key, Buffer.alloc(100));
    const archive = { offset: 0, length: 100 };
    const report = (batch: Batch, stored: typeof archive | null = archive): Report => ({
      ...{
        version: batch.version,
        batchId: batch.id,
        part: 0,
        final: true,
        worker: 'w',
        robots: [],
        quality: [],
      },
      ...{ startedAt: Date.now(), durationMs: 5, archive: stored && { key, bytes: 100 } },
      permits: [{ host: 'a.example', sent: 1, lastSentAt: Date.now(), finished: true }],
      outcomes: batch.tasks.map((task) => ({
        ...({ kind: 'fetched', taskId: task.id, links: [], records: [], shows: [] } as const),
        ...{ page: pageOf({ archive: stored }), trace: traceOf() },
      })),
    });
    const later = Promise.withResolvers<void>();
    const { requestedState } = store.jobs;
    let looks = 0;
    store.jobs.requestedState = (jobId) => {
      if (++looks === LOOKS) later.resolve();
      return requestedState.call(store.jobs, jobId);
    };
    storeOver?.(store, later.promise);
    let coordinator: Coordinator;
    const dispatcher: Dispatcher = {
      ...{ workers: 1, slots: 1, replyTo: 'this one', drain: async () => {}, close: async () => {} },
      // What went back is answered once the old file is gone.
      async dispatch(batch) {
        await vi.waitUntil(async () => !(await blobs.has(key)), { timeout: 20_000 });
        return { kind: 'report', report: report(batch, null) };
      },
      adopt: async (batch, _, onPart) => {
        if (hearsReport) onPart(report(batch));
        else
          void later.promise.then(() =>
            coordinator.stop({ state: 'stopped', cause: 'restart', message: 'enough' }),
          );
        return { kind: 'lost', batchId: id, reason: 'its worker died' };
      },
    };
    const shared = { store, job, clock: realClock, logger: SILENT };
    coordinator = new Coordinator({
      ...{ ...shared, blobs, dispatcher },
      feeder: new SourceFeeder({ ...shared, sources: [] }),
      progress: createProgress({ startedAt: Date.now() }),
      random: { next: Math.random },
      diskFree: async () => null,
    });
    await coordinator.run();
    const [task] = await collect(store.views.tasks(job.id));
    return { state: task!.state, isKept: await blobs.has(key) };
  } finally {
    await blobs.close();
    await store.close();
    await folder.remove();
  }
}

test('pages of a report that is being written down are kept, though its worker is told to be lost', async () => {
  const heard = await takeOver({
    hearsReport: true,
    storeOver: ({ frontier }, later) => {
      const { settle } = frontier;
      frontier.settle = async (settlement) => {
        await later;
        return settle.call(frontier, settlement);
      };
    },
  });
  expect(heard).toEqual({ state: 'done', isKept: true });
});

test('pages of a batch that another coordinator has by now are kept for that one', async () => {
  let isReleased = false;
  const heard = await takeOver({
    hearsReport: false,
    storeOver: ({ frontier }) => {
      frontier.release = async () => {
        isReleased = true;
        return { returned: 0, dead: 0, isOthers: true };
      };
    },
  });
  expect(isReleased).toBe(true);
  expect(heard).toEqual({ state: 'leased', isKept: true });
});

test('pages of a batch that went back are swept', async () => {
  const heard = await takeOver({ hearsReport: false });
  expect(heard.isKept).toBe(false);
});
