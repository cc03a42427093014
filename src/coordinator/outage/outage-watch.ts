import type { PermitUse, Report } from '../../core/batch/batch.ts';
import type { Outcome, RobotsOutcome } from '../../core/batch/outcome.ts';
import { LruMap } from '../../core/lru.ts';
import {
  isReachedSince,
  type Network,
  nextNetwork,
  ONLINE,
  OUTAGE_MS_MAX,
  PROBED_HOSTS,
  probed,
  type Reach,
  reachOf,
  unprobed,
} from '../../core/outage/outage.ts';
import { withSince } from '../../core/text/since.ts';
import { originOf } from '../../core/url/url-shape.ts';
import type { Clock, Logger } from '../../ports/ambient.ts';
import type { DueHost } from '../../ports/store.ts';
import type { OpenBatch } from '../plan/open-batch.ts';

/** Hosts that were reached in this run; what is forgotten counts as new. */
const REACHED_MAX = 20_000;
/** Of these, the latest: some of them are asked whether the network is there. */
const REFERENCES_MAX = 10;

/** A host that was reached, and where its robots.txt is. */
interface Reference {
  host: string;
  url: string;
}

/** Whether the network is there, and what may be sent when it is not; that is decided in `core/outage/`. */
export class OutageWatch {
  readonly #clock: Clock;
  readonly #logger: Pick<Logger, 'info' | 'warn'>;
  readonly #reached = new LruMap<true>(REACHED_MAX);
  #network: Network = ONLINE;
  #references: Reference[] = [];
  /** Probes begin with other hosts each time. */
  #turn = 0;
  /** The last probe: its batches that are out, and whether a request of them was sent. */
  #probe: { batches: Set<number>; isSent: boolean; before: number } | null = null;

  constructor({ clock, logger }: { clock: Clock; logger: Pick<Logger, 'info' | 'warn'> }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /**
   * The report as it counts: during an outage, what could not be reached was not tried. `reachedAt`: what the store
   * knows of a host.
   */
  judge(
    open: Pick<OpenBatch, 'batch' | 'tasks'>,
    report: Report,
    reachedAt: (host: string) => number | null = () => null,
  ): Report {
    const now = this.#clock.now();
    const results = reachesIn(open, report, now).map((reach) => ({
      ...reach,
      wasReached: this.#reached.get(reach.host) === true || isReachedSince(reachedAt(reach.host), now),
    }));
    for (const { host, isReached, origin } of results) if (isReached) this.#onReached(host, origin);
    this.#change(nextNetwork(this.#network, results, now));
    this.#noteProbe(report, now);
    if (this.#network.outage === null) return report;
    return {
      ...report,
      outcomes: report.outcomes.map((outcome) =>
        isUnreached(outcome) ? { kind: 'deferred', taskId: outcome.taskId } : outcome,
      ),
      robots: report.robots.map((answer) =>
        isUnreached(answer) ? { kind: 'deferred', origin: answer.origin } : answer,
      ),
      permits: report.permits.map(withoutUnreachedProbe),
    };
  }

  /**
   * What of the due hosts may be sent to: during an outage a task each of a few, when it is time for a probe. One of them is
   * a host that was not reached yet: the others may not be asked at all, as long as their robots.txt is at a host that is gone.
   */
  select(due: DueHost[]): DueHost[] {
    const { outage } = this.#network;
    if (outage === null) return due;
    const now = this.#clock.now();
    if (now < outage.probeAt) return [];
    const isBetter = ({ host, reachedAt }: DueHost) =>
      this.#reached.get(host) === true || isReachedSince(reachedAt, now);
    const better = due.filter(isBetter);
    const others = due.filter((host) => !isBetter(host));
    this.#turn++;
    const first = rotated(better, this.#turn * PROBED_HOSTS).slice(
      0,
      PROBED_HOSTS - Math.min(1, others.length),
    );
    const rest = PROBED_HOSTS - first.length;
    const hosts = [...first, ...rotated(others, this.#turn * rest)];
    return hosts.slice(0, PROBED_HOSTS).map((host) => ({ ...host, ready: Math.min(host.ready, 1) }));
  }

  /**
   * During an outage: a host that was reached before, to see whether it still is; of these rather one that has not failed
   * since. One that has is asked again all the same: it may have no tasks left, and then only this tells that the network
   * is back. Null when there is none.
   */
  get reference(): Reference | null {
    const { outage, unreached } = this.#network;
    if (outage === null) return null;
    const others = this.#references.filter(({ host }) => !unreached.some((each) => each.host === host));
    const references = others.length > 0 ? others : this.#references;
    return references[this.#turn % references.length] ?? null;
  }

  /** These batches are a probe, if there is an outage. */
  onSent(batchIds: readonly number[]): void {
    const { outage } = this.#network;
    if (outage === null) return;
    this.#probe = { batches: new Set(batchIds), isSent: false, before: outage.probes };
    this.#network = probed(this.#network, this.#clock.now());
  }

  /** Tasks of a probe that come back without a request, deferred, say nothing: that was none. */
  #noteProbe({ batchId, final, permits }: Report, now: number): void {
    const probe = this.#probe;
    if (!probe?.batches.has(batchId)) return;
    if (permits.some(({ sent }) => sent > 0)) probe.isSent = true;
    if (final) probe.batches.delete(batchId);
    if (probe.isSent || probe.batches.size > 0) return;
    this.#probe = null;
    this.#network = unprobed(this.#network, probe.before, now);
  }

  /** In words; null when the network is there. */
  tell(): string | null {
    const { outage } = this.#network;
    if (!outage) return null;
    const reason = `no host can be reached: next probe at ${new Date(outage.probeAt).toISOString()}`;
    return withSince(reason, this.#clock.now() - outage.since);
  }

  /** Whether it has been gone for so long that somebody has to look. */
  isLasting(): boolean {
    const { outage } = this.#network;
    return outage !== null && this.#clock.now() - outage.since >= OUTAGE_MS_MAX;
  }

  #onReached(host: string, origin: string): void {
    if (this.#reached.get(host) === true) return;
    this.#reached.set(host, true);
    this.#references = [{ host, url: `${origin}/robots.txt` }, ...this.#references].slice(0, REFERENCES_MAX);
  }

  #change(next: Network): void {
    const before = this.#network;
    this.#network = next;
    if (before.outage === null && next.outage !== null)
      this.#logger.warn('no host can be reached: the network seems to be gone, so tasks wait', {
        hosts: next.unreached.length,
      });
    if (before.outage === null || next.outage !== null) return;
    const seconds = Math.round((this.#clock.now() - before.outage.since) / 1_000);
    if (next.isResigned)
      this.#logger.warn('no host could be reached for long: taking them for dead', { seconds });
    else this.#logger.info('hosts can be reached again', { seconds });
  }
}

type Found = Omit<Reach, 'wasReached'> & { origin: string };

function reachesIn(
  { batch, tasks }: Pick<OpenBatch, 'batch' | 'tasks'>,
  report: Report,
  now: number,
): Found[] {
  const found: Found[] = [];
  const add = (result: Outcome | RobotsOutcome, permit: number, url: string) => {
    const reach = reachOf(result);
    if (reach) found.push({ ...reach, host: batch.permits[permit]!.host, origin: originOf(url) });
  };
  for (const answer of report.robots) {
    const fetch = batch.robots.find(({ origin }) => origin === answer.origin);
    if (fetch) add(answer, fetch.permit, fetch.url);
  }
  for (const outcome of report.outcomes) {
    const task = tasks.get(outcome.taskId);
    if (task) add(outcome, task.permit, task.url);
  }
  report.permits.forEach(({ probe, probeFailure, lastSentAt }, permit) => {
    const asked = batch.permits[permit]?.probe?.url;
    if (asked == null) return;
    if (probeFailure) add({ kind: 'failed', origin: originOf(asked), ...probeFailure }, permit, asked);
    if (probe !== 'answered' && probe !== 'refused') return;
    const { host } = batch.permits[permit]!;
    const at = lastSentAt ?? now;
    found.push({ host, isReached: true, isOwn: false, isOffline: false, at, origin: originOf(asked) });
  });
  return found;
}

function isUnreached(result: Outcome | RobotsOutcome): boolean {
  return reachOf(result)?.isReached === false;
}

function withoutUnreachedProbe(use: PermitUse): PermitUse {
  const { probeFailure, ...rest } = use;
  return probeFailure && isUnreached({ kind: 'failed', origin: '', ...probeFailure }) ? rest : use;
}

function rotated<T>(items: readonly T[], by: number): T[] {
  const at = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(at), ...items.slice(0, at)];
}
