import type { Outcome } from '../../core/batch/outcome.ts';
import {
  type BatchEnd,
  brokenCode,
  type CodeFailures,
  nextCodeFailures,
  nextFailedBatches,
} from '../../core/circuit-breaker/circuit-breaker.ts';
import type { Counters } from '../../core/model.ts';

/** The state of a job's circuit breaker. It begins closed with each run: whoever resumes a job wants it tried again. */
export class JobBreaker {
  #failedBatchesInRow = 0;
  #hasAnswers = false;
  #codeFailures: ReadonlyMap<string, CodeFailures> = new Map();

  get failedBatchesInRow(): number {
    return this.#failedBatchesInRow;
  }

  /** Why no more pages should be read; null while the code of the job works. */
  get brokenCode(): string | null {
    return brokenCode(this.#codeFailures);
  }

  onOutcomes(outcomes: readonly Outcome[]): void {
    this.#codeFailures = nextCodeFailures(this.#codeFailures, outcomes);
  }

  /** What earlier runs of the job have done. */
  begin({ done, unchanged }: Pick<Counters, 'done' | 'unchanged'>): void {
    this.#hasAnswers = done + unchanged > 0;
  }

  onBatchEnd(batch: BatchEnd): void {
    this.#failedBatchesInRow = nextFailedBatches(this.#failedBatchesInRow, batch, this.#hasAnswers);
    this.#hasAnswers ||= batch.kind === 'reported' && batch.succeeded > 0;
  }
}
