import type { AwsCredentialsProvider } from '../aws/s3/s3-client.ts';
import type { Batch, Report } from '../core/batch/batch.ts';
import { failureReport, lostReport } from '../core/batch/report.ts';
import { openThreadDispatcher, type ThreadDispatcherOptions } from '../transport/thread/thread-dispatcher.ts';

interface CodeThreadOptions extends Pick<ThreadDispatcherOptions, 'entry' | 'data' | 'env' | 'logger'> {
  name: string;
  credentials: AwsCredentialsProvider;
  heapMbMax?: number | undefined;
}

/**
 * A thread of a Lambda function for batches of jobs with code of their own. A handler that never returns, takes all memory
 * or ends its process ends this thread and fails its page; the function goes on and reports the other pages.
 */
export class CodeThread {
  readonly #dispatcher: ReturnType<typeof openThreadDispatcher>;
  readonly #name: string;
  #call = { clockOffsetMs: 0, answerMs: 0 };

  constructor(options: CodeThreadOptions) {
    this.#name = options.name;
    this.#dispatcher = openThreadDispatcher({
      ...options,
      threads: 1,
      call: () => this.#call,
    });
  }

  /** When it can work, or will never. */
  get started(): Promise<void> {
    return this.#dispatcher.started;
  }

  /** In parts, in their order. Rejects when the thread died and it is not known of which page. */
  async process(
    batch: Batch,
    {
      now,
      drain,
      ...call
    }: { clockOffsetMs: number; answerMs: number; now: () => number; drain: AbortSignal },
  ): Promise<Report[]> {
    this.#call = call;
    const recall = () => this.#dispatcher.recall(batch.id);
    drain.addEventListener('abort', recall);
    const parts: Report[] = [];
    try {
      const delivering = this.#dispatcher.dispatch(batch, (part) => void parts.push(part));
      if (drain.aborted) recall();
      const delivery = await delivering;
      if (delivery.kind === 'report') return [...parts, delivery.report];
      const { reason, blameless = false, running = [] } = delivery;
      if (!blameless && running.length === 0) throw new Error(reason);
      const about = { worker: this.#name, now: now() };
      for (const taskId of blameless ? [] : running)
        parts.push(failureReport(batch, { ...about, taskId, detail: reason }));
      return [...parts, lostReport(batch, parts, about)];
    } finally {
      drain.removeEventListener('abort', recall);
    }
  }
}
