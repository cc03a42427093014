import { billOf, PRICES_DEFAULT, type Prices, totalOf, type Usage } from '../../core/cost/cost.ts';
import type { DispatchCost } from '../../ports/dispatcher.ts';

const STORAGE_FREE_MB = 512;

export interface FunctionSize {
  memoryMb: number;
  storageMb: number;
  architecture: 'x86_64' | 'arm64';
}

/** What one call used. */
export function usageOfCall({ billedMs }: { billedMs: number }, size: FunctionSize): Usage {
  const seconds = billedMs / 1_000;
  const gbSeconds = (size.memoryMb / 1_024) * seconds;
  return {
    lambdaCalls: 1,
    ...(size.architecture === 'arm64' ? { lambdaArmGbSeconds: gbSeconds } : { lambdaGbSeconds: gbSeconds }),
    lambdaStorageGbSeconds: (Math.max(0, size.storageMb - STORAGE_FREE_MB) / 1_024) * seconds,
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
  readonly #prices: Prices;
  readonly #sum: DispatchCost = { invocations: 0, gbSeconds: 0, usd: 0 };

  constructor(prices: Prices = PRICES_DEFAULT) {
    this.#prices = prices;
  }

  /** `logResult`: as Lambda gives it, in base64. Without its line the time that was waited counts, which is a little more. */
  add(call: { logResult: string | undefined; waitedMs: number }, size: FunctionSize): Usage {
    const tail = Buffer.from(call.logResult ?? '', 'base64').toString('utf8');
    const used = usageOfCall({ billedMs: billedMsOf(tail) ?? Math.ceil(call.waitedMs) }, size);
    this.#sum.invocations++;
    this.#sum.gbSeconds += (used.lambdaGbSeconds ?? 0) + (used.lambdaArmGbSeconds ?? 0);
    this.#sum.usd += totalOf(billOf(used, this.#prices));
    return used;
  }

  get sum(): DispatchCost {
    return { ...this.#sum };
  }
}
