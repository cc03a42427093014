import type { Report } from '../../core/batch/batch.ts';
import { type BatchTrace, TRACED_PAGES_MAX } from '../../core/traces/batch-trace.ts';
import type { Clock } from '../../ports/ambient.ts';
import type { Job } from '../../ports/store.ts';
import type { TraceSink } from '../../ports/trace-sink.ts';
import type { OpenBatch } from '../plan/open-batch.ts';

interface TracerParts {
  traces?: TraceSink | undefined;
  job: Pick<Job, 'name' | 'run'>;
  clock: Clock;
}

/** Gathers what becomes of each batch. Workers return their timings with reports, so only the coordinator sends traces. */
export class BatchTracer {
  readonly #parts: TracerParts;
  readonly #open = new Map<number, BatchTrace>();

  constructor(parts: TracerParts) {
    this.#parts = parts;
  }

  onSent({ batch, plannedAt }: OpenBatch, now: number): void {
    const { traces, job } = this.#parts;
    if (!traces?.isSampled()) return;
    this.#open.set(batch.id, {
      job: `${job.name}-${job.run}`,
      batchId: batch.id,
      needs: batch.needs,
      tasks: batch.tasks.length,
      plannedAt: plannedAt ?? now,
      sentAt: now,
      endedAt: now,
      worker: null,
      startedAt: null,
      workedMs: 0,
      times: {},
      pages: [],
      settles: [],
      lost: null,
    });
  }

  /** Before it is settled: afterwards the batch has its tasks no longer. */
  onReport({ tasks }: OpenBatch, report: Report): void {
    const trace = this.#open.get(report.batchId);
    if (!trace) return;
    trace.worker = report.worker;
    trace.startedAt = Math.min(trace.startedAt ?? report.startedAt, report.startedAt);
    trace.workedMs = Math.max(trace.workedMs, report.startedAt + report.durationMs - trace.startedAt);
    for (const [state, ms] of Object.entries(report.times ?? {}) as [keyof BatchTrace['times'], number][])
      trace.times[state] = (trace.times[state] ?? 0) + ms;
    for (const outcome of report.outcomes) {
      const task = tasks.get(outcome.taskId);
      if (trace.pages.length >= TRACED_PAGES_MAX) break;
      if (!task || outcome.kind === 'deferred' || outcome.trace === null) continue;
      const { startedAt, durationMs, httpStatus, bytes, via } = outcome.trace;
      trace.pages.push({
        url: task.url,
        attempt: task.attempt,
        startedAt,
        durationMs,
        httpStatus,
        bytes,
        fetcher: via?.fetcher ?? 'http',
        error: outcome.kind === 'failed' ? outcome.code : null,
      });
    }
  }

  onSettled({ batchId, outcomes, final }: Report, from: number): void {
    const trace = this.#open.get(batchId);
    if (!trace) return;
    const to = this.#parts.clock.now();
    trace.settles.push({ from, to, outcomes: outcomes.length });
    if (final) this.#end(trace, to);
  }

  onLost(batchId: number, reason: string): void {
    const trace = this.#open.get(batchId);
    if (!trace) return;
    trace.lost = reason;
    this.#end(trace, this.#parts.clock.now());
  }

  #end(trace: BatchTrace, at: number): void {
    trace.endedAt = at;
    this.#open.delete(trace.batchId);
    this.#parts.traces?.add(trace);
  }
}
