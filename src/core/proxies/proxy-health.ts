import type { FailureCode } from '../failures.ts';
import { LIMITS } from '../limits.ts';

/**
 * How well something works, as far as is known: a proxy, a proxy at one host, a host through all proxies. Older news
 * counts less. Plain numbers, so that it can be stored.
 */
export interface Health {
  ok: number;
  bad: number;
  /** When the counts were true; epoch milliseconds. */
  at: number;
  /** Failures since the last success. */
  inRow: number;
  /** Rests since the last success; each is twice as long. */
  rests: number;
  /** Not to be used before. */
  until: number;
}

const HALF_LIFE_MS = 600_000;

export function newHealth(now: number): Health {
  return { ok: 0, bad: 0, at: now, inRow: 0, rests: 0, until: 0 };
}

/** As it was stored, perhaps under a clock that was ahead: then it says nothing about when. */
export function asOf(health: Health, now: number): Health {
  const isBelievable =
    health.at <= now + LIMITS.proxyRestMsMax && health.until <= now + LIMITS.proxyRestMsMax;
  return isBelievable ? { ...health } : { ...health, at: now, until: 0 };
}

function age(health: Health, now: number): void {
  const share = 2 ** (-Math.max(0, now - health.at) / HALF_LIFE_MS);
  health.ok *= share;
  health.bad *= share;
  health.at = Math.max(now, health.at);
}

export function noteGood(health: Health, now: number): void {
  age(health, now);
  health.ok += 1;
  health.inRow = 0;
  // What was under way when the rest began does not end it.
  if (now >= health.until) health.rests = 0;
}

/** `patience`: so many failures in a row are chance. One that has just rested gets no second chance. */
export function noteBad(health: Health, now: number, patience: number, restMs: number): void {
  age(health, now);
  health.bad += 1;
  health.inRow += 1;
  if (now < health.until || (health.rests === 0 && health.inRow <= patience)) return;
  health.rests += 1;
  health.until = now + Math.min(restMs * 2 ** (health.rests - 1), LIMITS.proxyRestMsMax);
}

/** The share that will probably succeed, between 0 and 1; a half when nothing is known. */
export function scoreOf(health: Health | undefined, now: number): number {
  if (!health) return 0.5;
  const share = 2 ** (-Math.max(0, now - health.at) / HALF_LIFE_MS);
  return (health.ok * share + 1) / ((health.ok + health.bad) * share + 2);
}

/** It rested, and has not worked since: one request at a time, until one succeeds. */
export function isOnProbation(health: Health | undefined): boolean {
  return health !== undefined && health.rests > 0;
}

/**
 * What a result says about the proxy it came through.
 * good     the site answered
 * blocked  the site answered, and refused: the proxy works, but perhaps not here
 * unsure   something between the proxy and the site went wrong
 * dead     the proxy itself failed
 */
export type ProxyVerdict = 'good' | 'blocked' | 'unsure' | 'dead';

const VERDICTS: Partial<Record<FailureCode, ProxyVerdict | null>> = {
  proxy: 'dead',
  'proxy-tunnel': 'unsure',
  dns: 'unsure',
  connect: 'unsure',
  'connect-timeout': 'unsure',
  tls: 'unsure',
  reset: 'unsure',
  'headers-timeout': 'unsure',
  'body-timeout': 'unsure',
  'task-timeout': 'unsure',
  protocol: 'unsure',
  truncated: 'unsure',
  unavailable: 'unsure',
  forbidden: 'blocked',
  throttled: 'blocked',
  blocked: 'blocked',
  captcha: 'blocked',
  'soft-block': 'blocked',
  // Refused or failed here, before or after the request.
  internal: null,
  'private-address': null,
  api: null,
};

/** Null when it says nothing. */
export function verdictOf(result: { kind: string; code?: string }): ProxyVerdict | null {
  if (result.kind === 'deferred' || result.kind === 'skipped') return null;
  return result.kind === 'failed' ? verdictOfCode(result.code as FailureCode) : 'good';
}

/** Null for `code`: the site answered with a success. */
export function verdictOfCode(code: FailureCode | null): ProxyVerdict | null {
  const verdict = code === null ? 'good' : VERDICTS[code];
  return verdict === undefined ? 'good' : verdict;
}

/**
 * How many refusals in a row of one proxy at one host are chance, when the host refuses this share of all requests:
 * pages that are forbidden for everybody are no fault of the proxy.
 */
export function patienceFor(refusedShare: number): number {
  const share = Math.min(Math.max(refusedShare, 0.05), 0.8);
  return Math.ceil(Math.log(0.02) / Math.log(share)) - 1;
}
