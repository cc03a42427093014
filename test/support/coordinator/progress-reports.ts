import type { Progress, RunView, ViewInput } from '../../../src/coordinator/reports/progress.ts';
import type { Batch, Report } from '../../../src/core/batch/batch.ts';
import { WIRE_VERSION } from '../../../src/core/batch/batch.ts';
import type { Outcome, Trace } from '../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../src/core/failures.ts';
import { jobSchema } from '../../../src/core/job-schema/job-schema.ts';
import { type Counters, zeroCounters } from '../../../src/core/model.ts';

/** Batches and reports by the shape of their timing, for tests of the progress model. */

export const START = 1_700_000_000_000;
const SPEC = { ...jobSchema.parse({ sources: 'http://a.test/' }), name: 'test' };

export function batchOf(id: number, hosts: string[], tasks: number): Batch {
  return {
    version: WIRE_VERSION,
    id,
    job: { id: 1, name: 'test', specHash: 'x', spec: SPEC, bundle: null, epoch: '1' },
    needs: 'http',
    budgetMs: 10_000,
    permits: hosts.map((host) => ({ host, startAt: START, endAt: START + 10_000, gapMs: 0, parallel: 4 })),
    robots: [],
    tasks: Array.from({ length: tasks }, (_, i) => ({
      id: id * 1_000 + i,
      url: `http://${hosts[i % hosts.length]}/page/${i}`,
      permit: i % hosts.length,
      depth: 0,
      route: null,
      attempt: 1,
      hops: 0,
      meta: null,
      lastVisit: null,
    })),
    archiveKey: `batch-${id}`,
    packKey: `pack-${id}`,
  };
}

export type Kind = Outcome['kind'];

function outcomeOf(kind: Kind, taskId: number, trace: Trace, code: FailureCode = 'not-found'): Outcome {
  const page = {
    route: null,
    httpStatus: 200,
    contentType: 'text/html',
    bytes: trace.bytes,
    sha256: '0',
    archive: null,
    media: null,
    robotsTags: null,
    etag: null,
    lastModified: null,
  };
  if (kind === 'fetched') return { kind, taskId, page, links: [], records: [], shows: [], trace };
  if (kind === 'unchanged') return { kind, taskId, page: null, trace };
  if (kind === 'redirected') return { kind, taskId, to: 'http://a.test/', page, trace };
  if (kind === 'skipped') return { kind, taskId, code: 'robots', detail: null, trace: null };
  if (kind === 'failed') return { kind, taskId, code, detail: 'no', page: null, retryAfterMs: null, trace };
  return { kind, taskId };
}

interface ReportShape {
  startedAt: number;
  endedAt: number;
  kinds?: Kind[];
  codes?: FailureCode[];
  worker?: string;
  durationMs?: number;
  httpStatus?: number;
}

/** Requests spread evenly from start to end, 1,000 bytes each. */
export function reportOf(batch: Batch, shape: ReportShape): Report {
  const {
    startedAt,
    endedAt,
    kinds = ['fetched'],
    codes = ['not-found'],
    worker = 'w-1',
    durationMs = 10,
  } = shape;
  const step = (endedAt - startedAt) / batch.tasks.length;
  return {
    version: WIRE_VERSION,
    batchId: batch.id,
    part: 0,
    final: true,
    worker,
    startedAt,
    durationMs: endedAt - startedAt,
    permits: batch.permits.map((permit, index) => ({
      host: permit.host,
      sent: batch.tasks.filter((task) => task.permit === index).length,
      lastSentAt: endedAt,
      finished: true,
    })),
    robots: [],
    outcomes: batch.tasks.map((task, i) => {
      const trace = {
        startedAt: startedAt + (i + 1) * step - durationMs,
        durationMs,
        httpStatus: shape.httpStatus ?? 200,
        bytes: 1_000,
      };
      return outcomeOf(kinds[i % kinds.length]!, task.id, trace, codes[i % codes.length]);
    }),
    quality: [],
    archive: null,
  };
}

function counters(part: Partial<Counters>): Counters {
  return { ...zeroCounters(), ...part };
}

export function look(
  progress: Progress,
  now: number,
  part: Partial<Counters>,
  more: Partial<ViewInput> = {},
): RunView {
  const job = { name: 'test', state: 'running' as const };
  return progress.view({ now, counters: counters(part), job, sourcesDone: true, ...more });
}

export function deliver(progress: Progress, batch: Batch, shape: ReportShape, now = shape.endedAt): void {
  progress.onDispatch(batch, shape.startedAt);
  progress.onDelivery({ kind: 'report', report: reportOf(batch, shape) }, now);
}
