import type { QualityDelta } from '../core/batch/outcome.ts';

/** Adds up what the records of a batch look like, until a report takes it along. */
export class QualitySum {
  #routes = new Map<string, QualityDelta>();

  add({ route, records, invalid, filled }: QualityDelta): void {
    let sum = this.#routes.get(route);
    if (!sum) {
      sum = { route, records: 0, invalid: 0, filled: {} };
      this.#routes.set(route, sum);
    }
    sum.records += records;
    sum.invalid += invalid;
    for (const [field, count] of Object.entries(filled)) sum.filled[field] = (sum.filled[field] ?? 0) + count;
  }

  take(): QualityDelta[] {
    const taken = [...this.#routes.values()];
    this.#routes = new Map();
    return taken;
  }
}
