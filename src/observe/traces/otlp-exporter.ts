import { randomBytes } from 'node:crypto';
import type { TraceSettings } from '../../config/traces.ts';
import { messageOf } from '../../core/errors.ts';
import { hideCredentials } from '../../core/text/redact.ts';
import { spansOf } from '../../core/traces/batch-spans.ts';
import type { BatchTrace } from '../../core/traces/batch-trace.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { TraceSink } from '../../ports/trace-sink.ts';
import { type OtlpSpan, toOtlpRequest, toOtlpSpans } from './otlp-json.ts';

interface ExporterOptions extends TraceSettings {
  /** How batches are carried: `messaging.system`. */
  transport: string;
  logger: Pick<Logger, 'warn'>;
  random?: () => number;
}

/** Spans that wait to be sent: some 4 MB. More are dropped, as the specification says, and the log tells how many. */
const WAITING_MAX = 4_096;
const SENT_AT_ONCE = 512;
const SEND_MS = 5_000;
const CLOSE_MS = 5_000;
/** While a collector is away, the log tells so this often. */
const TELL_MS = 60_000;
const RETRIED = new Set([429, 502, 503, 504]);

/** Sends traces to a collector, as OTLP over HTTP in JSON. */
export class OtlpExporter implements TraceSink {
  readonly #options: ExporterOptions;
  readonly #random: () => number;
  readonly #timer: NodeJS.Timeout;
  #waiting: OtlpSpan[] = [];
  #dropped = 0;
  #toldAt = Number.NEGATIVE_INFINITY;
  #sending: Promise<boolean> | null = null;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#timer = setInterval(() => void this.flush(), SEND_MS);
    this.#timer.unref();
  }

  isSampled(): boolean {
    const { share } = this.#options;
    return share >= 1 || this.#random() < share;
  }

  add(trace: BatchTrace): void {
    const spans = toOtlpSpans(spansOf(trace, this.#options.transport), (digits) =>
      randomBytes(digits / 2).toString('hex'),
    );
    if (this.#waiting.length + spans.length > WAITING_MAX) this.#dropped += spans.length;
    else this.#waiting.push(...spans);
    if (this.#waiting.length >= SENT_AT_ONCE) void this.flush();
  }

  /** Sends what waits, until all of it is gone or the collector does not take it. */
  async flush(): Promise<void> {
    if (this.#sending) {
      await this.#sending;
      return;
    }
    while (this.#waiting.length > 0) {
      this.#sending = this.#send(this.#waiting.slice(0, SENT_AT_ONCE));
      const isSent = await this.#sending;
      this.#sending = null;
      if (!isSent) return;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, CLOSE_MS);
    await Promise.race([promise, this.flush().then(() => this.flush())]);
    clearTimeout(timer);
  }

  /** False when they are to be sent again later. */
  async #send(spans: OtlpSpan[]): Promise<boolean> {
    const { url, headers, attributes, timeoutMs } = this.#options;
    try {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(toOtlpRequest(spans, attributes)),
        signal: AbortSignal.timeout(timeoutMs),
        redirect: 'error',
      });
      await answer.body?.cancel();
      if (RETRIED.has(answer.status)) {
        this.#tell(`it answers ${answer.status}`);
        return false;
      }
      if (!answer.ok) {
        this.#dropped += spans.length;
        this.#tell(`it answers ${answer.status}`);
      }
    } catch (error) {
      const { cause } = error as { cause?: unknown };
      this.#tell(messageOf(cause ?? error));
      return false;
    }
    this.#waiting = this.#waiting.slice(spans.length);
    return true;
  }

  #tell(reason: string): void {
    const now = performance.now();
    if (now - this.#toldAt < TELL_MS) return;
    this.#toldAt = now;
    const dropped = this.#dropped === 0 ? '' : `; ${this.#dropped} spans were dropped`;
    this.#options.logger.warn(
      `cannot send traces to ${hideCredentials(this.#options.url)}: ${reason}${dropped}`,
    );
  }
}
