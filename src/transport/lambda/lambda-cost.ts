import type { DispatchCost } from '../../ports/dispatcher.ts';

/**
 * On-demand prices in US dollars of US East (N. Virginia), first tier, without the free one, as of 2026-01-01:
 * https://aws.amazon.com/lambda/pricing/. Other regions differ by some percent; for a bill ask AWS.
 */
const LAMBDA_PRICES = {
  request: 0.2 / 1_000_000,
  gbSecond: { x86_64: 0.000_016_666_7, arm64: 0.000_013_333_4 },
  /** Of /tmp, beyond the first 512 MB. */
  storageGbSecond: 0.000_000_030_9,
} as const;

const STORAGE_FREE_MB = 512;

export interface FunctionSize {
  memoryMb: number;
  storageMb: number;
  architecture: keyof typeof LAMBDA_PRICES.gbSecond;
}

export function priceOf(
  { billedMs }: { billedMs: number },
  size: FunctionSize,
): Omit<DispatchCost, 'invocations'> {
  const seconds = billedMs / 1_000;
  const gbSeconds = (size.memoryMb / 1_024) * seconds;
  const storage = (Math.max(0, size.storageMb - STORAGE_FREE_MB) / 1_024) * seconds;
  return {
    gbSeconds,
    usd:
      LAMBDA_PRICES.request +
      gbSeconds * LAMBDA_PRICES.gbSecond[size.architecture] +
      storage * LAMBDA_PRICES.storageGbSecond,
  };
}

/** What Lambda's own last line of the log says was billed, as text or as JSON; null when it is not there. */
export function billedMsOf(logTail: string): number | null {
  const text = /^REPORT RequestId: .{0,200}?\tBilled Duration: (\d{1,9}) ms/m.exec(logTail)?.[1];
  const json = /"billedDurationMs":\s?(\d{1,9})/.exec(logTail)?.[1];
  const ms = text ?? json;
  return ms === undefined ? null : Number(ms);
}

/** Adds up what invocations took. */
export class CostMeter {
  readonly #sum: DispatchCost = { invocations: 0, gbSeconds: 0, usd: 0 };

  /** `logResult`: as Lambda gives it, in base64. Without its line the time that was waited counts, which is a little more. */
  add(call: { logResult: string | undefined; waitedMs: number }, size: FunctionSize): void {
    const tail = Buffer.from(call.logResult ?? '', 'base64').toString('utf8');
    const { gbSeconds, usd } = priceOf({ billedMs: billedMsOf(tail) ?? Math.ceil(call.waitedMs) }, size);
    this.#sum.invocations++;
    this.#sum.gbSeconds += gbSeconds;
    this.#sum.usd += usd;
  }

  get sum(): DispatchCost {
    return { ...this.#sum };
  }
}
