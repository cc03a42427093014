import type { Report } from '../../core/batch/batch.ts';
import { addLatency, emptyHistogram } from '../../core/rollups/histogram.ts';
import type { Dispatcher } from '../../ports/dispatcher.ts';
import { histogramSamples } from './histogram-samples.ts';
import { slotMetrics } from './slot-metrics.ts';
import type { Metric } from './text-format.ts';

/** Counts what the threads of a worker do. What it means for a job is known to the coordinator of that job. */
export class WorkerMetrics {
  readonly #latency = emptyHistogram();
  readonly #outcomes = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  #bytes = 0;
  #batches = 0;
  #busy = 0;

  /** The same dispatcher, whose reports are counted. */
  counting<T extends Dispatcher>(dispatcher: T): T {
    return Object.assign(Object.create(dispatcher) as T, {
      dispatch: async (...[batch, onPart]: Parameters<Dispatcher['dispatch']>) => {
        this.#busy++;
        try {
          const delivery = await dispatcher.dispatch(batch, (part) => {
            this.#note(part);
            onPart(part);
          });
          if (delivery.kind === 'report') this.#note(delivery.report);
          return delivery;
        } finally {
          this.#busy--;
          this.#batches++;
        }
      },
    });
  }

  read({ slots }: Pick<Dispatcher, 'slots'>): Metric[] {
    const counter = (name: string, help: string, samples: Metric['samples']): Metric => ({
      name,
      type: 'counter',
      help,
      samples,
    });
    const named = (label: string, counts: ReadonlyMap<string, number>) =>
      [...counts].map(([name, value]) => ({ labels: { [label]: name }, value }));
    return [
      counter('seine_worker_batches_total', 'Batches that came to their end.', [{ value: this.#batches }]),
      counter('seine_worker_outcomes_total', 'Outcomes of URLs.', named('outcome', this.#outcomes)),
      counter('seine_worker_failures_total', 'Attempts that failed, by code.', named('code', this.#failures)),
      counter('seine_bytes_total', 'Bytes of bodies that were received.', [{ value: this.#bytes }]),
      {
        name: 'seine_fetch_duration_seconds',
        type: 'histogram',
        help: 'How long fetches took.',
        samples: histogramSamples(this.#latency, {}),
      },
      ...slotMetrics({ slots, busy: this.#busy }),
    ];
  }

  #note({ outcomes }: Report): void {
    for (const outcome of outcomes) {
      add(this.#outcomes, outcome.kind);
      if (outcome.kind === 'deferred') continue;
      if (outcome.kind === 'failed') add(this.#failures, outcome.code);
      if (outcome.trace === null) continue;
      this.#bytes += outcome.trace.bytes;
      addLatency(this.#latency, outcome.trace.durationMs);
    }
  }
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
