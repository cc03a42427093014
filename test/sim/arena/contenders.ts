import { adaptPace, type HostPace, isTrying } from '../../../src/core/pace/pace.ts';
import { guardedGapMs, refusalPauseMs, tasksPerPermit } from '../../../src/core/politeness/permits.ts';
import type { HostAnswer, Random } from './hosts.ts';
import type { Network } from './network.ts';

/** Ways to set the rate of requests, each until a time on a simulated host. */
export type Contender = (network: Network, until: number, random: Random) => void;

const CAP = 1_000;
const FIRST_PAUSE_MS = 1_000;
const POOL_REQUESTS_MAX = 60_000;

/** The pace of a run (`core/pace/`), under permits of five seconds that follow each other. */
export function seinePace(start: HostPace): Contender {
  return (network, until) => {
    let pace = start;
    let pauseUntil = 0;
    let open = 0;
    while (network.now < until) {
      const { rate } = pace;
      const gapMs = guardedGapMs(1_000 / rate, null);
      const permit = {
        rate,
        answers: 0,
        refused: 0,
        faults: 0,
        latencies: [] as number[],
        sent: 0,
        isSent: false,
      };
      const finish = () => {
        if (!permit.isSent || permit.answers < permit.sent) return;
        open--;
        const { answers, refused, faults } = permit;
        const latencyMs =
          permit.latencies.sort((a, b) => a - b)[Math.floor(permit.latencies.length / 2)] ?? null;
        pace = adaptPace(
          pace,
          { rate, answers, refused, faults, latencyMs, sentRate: rate },
          CAP,
          network.now,
        );
      };
      const onAnswer = (answer: HostAnswer, sentAt: number) => {
        permit.answers++;
        permit.latencies.push(network.now - sentAt);
        if (answer.kind === 'failed') permit.faults++;
        if (answer.kind === 'refused' || answer.kind === 'blocked') {
          permit.refused++;
          const askedMs = answer.retryAfterMs ?? refusalPauseMs(pace.blocked ?? 0, FIRST_PAUSE_MS);
          pauseUntil = Math.max(pauseUntil, network.now + askedMs);
        }
        finish();
      };
      open++;
      // A permit that met a refusal ends there.
      for (let count = tasksPerPermit(gapMs); count > 0 && permit.refused === 0; count--) {
        permit.sent++;
        network.send(onAnswer);
        network.runUntil(network.now + gapMs, false);
      }
      permit.isSent = true;
      finish();
      network.runUntil(Math.max(network.now, pauseUntil), false);
      // A rate above what held goes out alone.
      while ((isTrying(pace) && open > 0) || open > 2) network.runUntil(Number.POSITIVE_INFINITY, true);
      network.runUntil(Math.max(network.now, pauseUntil), false);
    }
  };
}

/** Scrapy's AutoThrottle with its defaults: the delay follows the latency; what is refused only never lowers it. */
export const autoThrottle: Contender = (network, until, random) => {
  let delayMs = 5_000;
  let underWay = 0;
  while (network.now < until) {
    if (underWay >= 8) network.runUntil(Number.POSITIVE_INFINITY, true);
    else {
      underWay++;
      network.send((answer, sentAt) => {
        underWay--;
        const latencyMs = network.now - sentAt;
        const next = Math.min(60_000, Math.max(latencyMs, (delayMs + latencyMs) / 2));
        if (answer.kind === 'answered' || next > delayMs) delayMs = next;
      });
      network.runUntil(network.now + delayMs * (0.5 + random()), false);
    }
  }
};

/** Crawlee's autoscaled pool with its defaults on an idle machine: 5 % more at once every ten seconds, up to 200. */
export const crawleePool: Contender = (network, until) => {
  let wanted = 1;
  let underWay = 0;
  let scaleAt = network.now + 10_000;
  // It goes far beyond any limit: what follows is the same as before.
  while (network.now < until && network.requests < POOL_REQUESTS_MAX) {
    if (network.now >= scaleAt) {
      scaleAt += 10_000;
      if (underWay >= wanted * 0.9) wanted = Math.min(200, wanted + Math.ceil(wanted * 0.05));
    }
    if (underWay < wanted) {
      underWay++;
      network.send(() => underWay--);
    } else network.runUntil(scaleAt, true);
  }
};
