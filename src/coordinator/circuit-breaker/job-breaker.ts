import { type BatchEnd, nextFailedBatches } from '../../core/circuit-breaker/circuit-breaker.ts';

/** The state of a job's circuit breaker. It begins closed with each run: whoever resumes a job wants it tried again. */
export class JobBreaker {
  #failedBatchesInRow = 0;

  get failedBatchesInRow(): number {
    return this.#failedBatchesInRow;
  }

  onBatchEnd(batch: BatchEnd): void {
    this.#failedBatchesInRow = nextFailedBatches(this.#failedBatchesInRow, batch);
  }
}
