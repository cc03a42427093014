import type { Batch, WorkerKind } from '../core/batch/batch.ts';
import { deferredReport } from '../core/batch/report.ts';
import { messageOf, type SeineError } from '../core/errors.ts';
import type { ScalingDecision } from '../core/explain/scaling-decision.ts';
import type { Wanted } from '../core/scaling/scaling.ts';
import type { Delivery, DispatchCost, Dispatcher, WorkerHeartbeat } from '../ports/dispatcher.ts';
import { chooseShare, freeOf, noteAnswer, noteLoss, type Share, startShare } from './weighted-choice.ts';

interface WeightedPart {
  dispatcher: Dispatcher;
  weight: number;
}

/** How long a batch waits for a dispatcher that can take it. Then its tasks go back, which is no attempt. */
const WAIT_MS = 5_000;
/** Workers come and go without telling us. */
const LOOK_MS = 250;

type OnPart = Parameters<Dispatcher['dispatch']>[1];

interface Waiting {
  kind: WorkerKind;
  resolve(index: number | null): void;
}

/** One job over several dispatchers at once: batches are shared by weight among those that have room. */
export function openWeightedDispatcher(
  parts: readonly WeightedPart[],
  options: { waitMs?: number } = {},
): Dispatcher {
  return new WeightedDispatcher(parts, options.waitMs ?? WAIT_MS);
}

class WeightedDispatcher implements Dispatcher {
  readonly #dispatchers: readonly Dispatcher[];
  readonly #shares: readonly Share[];
  readonly #waitMs: number;
  readonly #waiting = new Set<Waiting>();
  #draining = false;
  #closing: Promise<void> | null = null;
  readonly heartbeats?: () => Promise<WorkerHeartbeat[]>;
  readonly cost?: () => DispatchCost;
  readonly want?: (wanted: Wanted | null) => void;

  constructor(parts: readonly WeightedPart[], waitMs: number) {
    this.#dispatchers = parts.map(({ dispatcher }) => dispatcher);
    this.#shares = parts.map(({ weight }) => startShare(weight));
    this.#waitMs = waitMs;
    const withHeartbeats = this.#dispatchers.filter((dispatcher) => dispatcher.heartbeats);
    if (withHeartbeats.length > 0)
      this.heartbeats = async () =>
        (await Promise.all(withHeartbeats.map((dispatcher) => dispatcher.heartbeats?.() ?? []))).flat();
    const following = this.#dispatchers.flatMap((dispatcher, index) =>
      dispatcher.want ? [{ dispatcher, weight: parts[index]!.weight }] : [],
    );
    const weights = parts.reduce((sum, { weight }) => sum + weight, 0);
    if (following.length > 0)
      this.want = (wanted) => {
        for (const { dispatcher, weight } of following)
          dispatcher.want?.(
            wanted && { ...wanted, slots: Math.max(1, Math.ceil((wanted.slots * weight) / weights)) },
          );
      };
    const paid = this.#dispatchers.filter((dispatcher) => dispatcher.cost);
    if (paid.length > 0) this.cost = () => sumOf(paid.flatMap((dispatcher) => dispatcher.cost?.() ?? []));
  }

  /** Of those that get batches now. */
  get workers(): number {
    const now = performance.now();
    return this.#dispatchers.reduce((sum, { workers }, index) => {
      const isResting = now < this.#shares[index]!.restUntil;
      return sum + (isResting ? 0 : workers);
    }, 0);
  }

  get decisions(): readonly ScalingDecision[] {
    return this.#dispatchers.flatMap(({ decisions = [] }) => decisions);
  }

  get addresses(): number {
    return this.#dispatchers.reduce((sum, { addresses = 1 }) => sum + addresses, 0);
  }

  /** What is out and what is free: a part that gets nothing now must not make the others look full. */
  get slots(): number {
    return this.#shares.reduce((sum, { out }, index) => sum + out + this.#freeOf(index), 0);
  }

  get suspectSlots(): number {
    return this.#dispatchers.reduce((sum, { suspectSlots, slots }) => sum + (suspectSlots ?? slots), 0);
  }

  slotsFor(kind: WorkerKind): number {
    return this.#dispatchers.reduce((sum, dispatcher) => {
      if (!canServe(dispatcher, kind)) return sum;
      return sum + (dispatcher.slotsFor?.(kind) ?? dispatcher.slots);
    }, 0);
  }

  serves(kind: WorkerKind): boolean {
    return this.#dispatchers.some((dispatcher) => canServe(dispatcher, kind));
  }

  /** One that may is enough. */
  /** While one of them works, nothing stands still. */
  trouble(): string | null {
    const troubles = this.#dispatchers.map((dispatcher) => dispatcher.trouble?.() ?? null);
    return troubles.includes(null) ? null : (troubles[0] ?? null);
  }

  refusal(kind: WorkerKind): SeineError | null {
    const refusals = this.#dispatchers.map((dispatcher) => dispatcher.refusal?.(kind) ?? null);
    return refusals.includes(null) ? null : (refusals[0] ?? null);
  }

  async dispatch(batch: Batch, onPart: OnPart): Promise<Delivery> {
    const index = this.#draining ? null : (this.#take(batch.needs) ?? (await this.#wait(batch.needs)));
    if (index === null)
      return { kind: 'report', report: deferredReport(batch, { worker: 'none', now: Date.now() }) };
    const share = this.#shares[index]!;
    const sentAt = performance.now();
    const delivery = await deliver(this.#dispatchers[index]!, batch, onPart);
    share.out--;
    if (delivery.kind === 'report') noteAnswer(share);
    else noteLoss(share, { sentAt, now: performance.now() });
    this.#serveWaiting();
    return delivery;
  }

  async drain(): Promise<void> {
    this.#sendHome();
    await Promise.all(this.#dispatchers.map((dispatcher) => dispatcher.drain()));
  }

  /** All of them are closed, also when one cannot be. */
  close(): Promise<void> {
    this.#sendHome();
    this.#closing ??= Promise.allSettled(this.#dispatchers.map((dispatcher) => dispatcher.close())).then(
      (results) => {
        const failed = results.find((result) => result.status === 'rejected');
        if (failed) throw failed.reason;
      },
    );
    return this.#closing;
  }

  #freeOf(index: number): number {
    return freeOf(this.#shares[index]!, this.#dispatchers[index]!, performance.now());
  }

  /** Counted as out at once, so that no other batch gets the same place. */
  #take(kind: WorkerKind): number | null {
    const index = chooseShare(
      this.#shares,
      (candidate) => this.#freeOf(candidate) > 0 && canServe(this.#dispatchers[candidate]!, kind),
    );
    if (index !== null) this.#shares[index]!.out++;
    return index;
  }

  async #wait(kind: WorkerKind): Promise<number | null> {
    const { promise, resolve } = Promise.withResolvers<number | null>();
    const waiting: Waiting = {
      kind,
      resolve: (index) => {
        this.#waiting.delete(waiting);
        resolve(index);
      },
    };
    this.#waiting.add(waiting);
    const look = setInterval(() => this.#serveWaiting(), LOOK_MS);
    const end = setTimeout(() => waiting.resolve(null), this.#waitMs);
    try {
      return await promise;
    } finally {
      clearInterval(look);
      clearTimeout(end);
    }
  }

  #serveWaiting(): void {
    for (const waiting of [...this.#waiting]) {
      const index = this.#take(waiting.kind);
      if (index !== null) waiting.resolve(index);
    }
  }

  #sendHome(): void {
    this.#draining = true;
    for (const waiting of [...this.#waiting]) waiting.resolve(null);
  }
}

function canServe(dispatcher: Dispatcher, kind: WorkerKind): boolean {
  return dispatcher.serves?.(kind) ?? true;
}

/** A dispatcher never rejects; one that does costs its own batch. */
async function deliver(dispatcher: Dispatcher, batch: Batch, onPart: OnPart): Promise<Delivery> {
  try {
    return await dispatcher.dispatch(batch, onPart);
  } catch (error) {
    return { kind: 'lost', batchId: batch.id, reason: messageOf(error) };
  }
}

function sumOf(costs: readonly DispatchCost[]): DispatchCost {
  return costs.reduce(
    (sum, { invocations, gbSeconds, usd }) => ({
      invocations: sum.invocations + invocations,
      gbSeconds: sum.gbSeconds + gbSeconds,
      usd: sum.usd + usd,
    }),
    { invocations: 0, gbSeconds: 0, usd: 0 },
  );
}
