import { hash } from 'node:crypto';
import type { Permit, PermitUse } from '../batch/batch.ts';
import type { Outcome, RobotsOutcome } from '../batch/outcome.ts';
import { isRefusal, isThrottling } from '../failures.ts';

/**
 * The host log: what every host was asked, as evidence of polite crawling. Each host has a chain of entries of its own,
 * over all jobs. Entries are only ever added, each with the hash of the one before it.
 *
 * Text      the entry as JSON with sorted names and no spaces. All numbers are whole, so that every language writes them alike.
 * Hash      SHA-256, in hex, of the hash before it followed by the text, in UTF-8.
 * First     the hash before the first entry is 64 zeros. A log that was cut begins with a checkpoint: `checkpoint.ts`.
 */
export interface HostLogRow {
  /**
   * `report`: a worker said what it sent. `lost`: it did not answer. `calibration`: the requests of `seine calibrate`.
   * `checkpoint`: sums of what is before it.
   */
  kind: 'report' | 'lost' | 'calibration' | 'checkpoint';
  host: string;
  /** Its place in the chain, from 1 on. */
  number: number;
  /** When the entry was written. All times are ISO 8601 in UTC. */
  at: string;
  job: string | null;
  batch: number | null;
  permit: LoggedPermit | null;
  /** Requests sent; null when that is not known. */
  requests: number | null;
  firstSentAt: string | null;
  lastSentAt: string | null;
  smallestGapUs: number | null;
  /** How many requests were answered with which HTTP status; `none` where there was no response. */
  answers: Record<string, number> | null;
  /** Answers that asked for fewer requests, or refused us. */
  refusals: number | null;
  /** robots.txt that was fetched, with the SHA-256 of its text; null when there was none. */
  robots: { origin: string; sha256: string | null }[];
  /** Of a checkpoint: all entries before it, from the first on, also those that are no longer there. */
  before?: LogSums;
  previous: string;
  hash: string;
}

/** What entries say together. */
export interface LogSums {
  entries: number;
  /** When the first of them was written. */
  firstAt: string | null;
  /** Of the last of them. */
  hash: string;
  lost: number;
  permits: number;
  refusals: number;
  requests: number;
}

interface LoggedPermit {
  /** Where several addresses are used at the same time: the one that the requests came from. */
  address?: string;
  startAt: string;
  endAt: string;
  /** Least time between two requests; 0 when only parallelism limits. */
  gapUs: number;
  parallel: number;
}

/** An entry without its place in the chain: what is hashed. */
type HostLogEntry = Omit<HostLogRow, 'number' | 'previous' | 'hash'>;

export const FIRST_PREVIOUS = '0'.repeat(64);

/** All names are in order already where entries are made: sorting them here took most of the time of an entry. */
export function textOf(entry: HostLogEntry): string {
  return JSON.stringify(entry);
}

export function hashOf(previous: string, text: string): string {
  return hash('sha256', previous + text);
}

/** What a chain holds of an entry. */
export interface StoredLogEntry {
  number: number;
  /** Null when the entry before it is not there: it was cut, or it never was. */
  previous: string | null;
  hash: string;
  text: string;
}

export function rowOf({ number, previous, hash, text }: StoredLogEntry): HostLogRow {
  const { host, kind, at, job, ...entry }: HostLogEntry = JSON.parse(text);
  const before = number === 1 ? FIRST_PREVIOUS : (entry.before?.hash ?? FIRST_PREVIOUS);
  return { host, number, kind, at, job, ...entry, previous: previous ?? before, hash };
}

/** What a report says of the host of one permit; null when nothing was sent or answered. */
export function reportEntry(about: {
  now: number;
  job: string;
  batch: number;
  permit: Permit;
  address?: string | undefined;
  use: PermitUse;
  outcomes: readonly Outcome[];
  robots: readonly RobotsOutcome[];
  fetched: readonly { origin: string; text: string | null }[];
}): HostLogEntry | null {
  const { now, job, batch, permit, address, use, outcomes, robots, fetched } = about;
  const answers = new Map<string, number>();
  let refusals = 0;
  for (const result of [...robots, ...outcomes]) {
    if (result.kind === 'deferred' || result.trace === null) continue;
    const status = result.trace.httpStatus;
    const name = status === null ? 'none' : String(status);
    answers.set(name, (answers.get(name) ?? 0) + 1);
    if (result.kind !== 'failed') continue;
    if (isThrottling(result.code, status) || isRefusal(result.code, status)) refusals++;
  }
  // Parts of a report may tell of requests and of their answers one after the other.
  if (use.sent === 0 && fetched.length === 0 && answers.size === 0) return null;
  return {
    answers: Object.fromEntries([...answers].sort(([a], [b]) => (a < b ? -1 : 1))),
    at: timeText(now),
    batch,
    firstSentAt: timeText(use.firstSentAt ?? null),
    host: permit.host,
    job,
    kind: 'report',
    lastSentAt: use.sent === 0 ? null : timeText(use.lastSentAt),
    permit: loggedPermit(permit, address),
    refusals,
    requests: use.sent,
    robots: fetched.map(({ origin, text }) => ({
      origin,
      sha256: text === null ? null : hash('sha256', text),
    })),
    smallestGapUs: use.smallestGapMs == null ? null : Math.round(use.smallestGapMs * 1_000),
  };
}

/** A worker died or did not answer: what it sent under the permit is not known. */
export function lostEntry(about: { now: number; job: string; batch: number; permit: Permit }): HostLogEntry {
  const { now, job, batch, permit } = about;
  return { ...nothing(permit.host, 'lost', now), batch, job, permit: loggedPermit(permit) };
}

export function calibrationEntry(about: {
  now: number;
  host: string;
  requests: number;
  refusals: number;
}): HostLogEntry {
  const { now, host, requests, refusals } = about;
  return { ...nothing(host, 'calibration', now), refusals, requests };
}

export function checkpointEntry(about: { now: number; host: string; before: LogSums }): HostLogEntry {
  const { now, host, before } = about;
  const { answers, at, batch, ...rest } = nothing(host, 'checkpoint', now);
  const { entries, firstAt, hash: last, lost, permits, refusals, requests } = before;
  const sums = { entries, firstAt, hash: last, lost, permits, refusals, requests };
  return { answers, at, batch, before: sums, ...rest };
}

function nothing(host: string, kind: HostLogEntry['kind'], now: number): HostLogEntry {
  return {
    answers: null,
    at: timeText(now),
    batch: null,
    firstSentAt: null,
    host,
    job: null,
    kind,
    lastSentAt: null,
    permit: null,
    refusals: null,
    requests: null,
    robots: [],
    smallestGapUs: null,
  };
}

function loggedPermit(
  { startAt, endAt, gapMs, parallel, addresses }: Permit,
  address?: string,
): LoggedPermit {
  return {
    ...(addresses && address !== undefined ? { address } : {}),
    endAt: timeText(endAt),
    gapUs: Math.round(gapMs * 1_000),
    parallel,
    startAt: timeText(startAt),
  };
}

function timeText(at: number): string;
function timeText(at: number | null): string | null;
function timeText(at: number | null): string | null {
  return at === null ? null : new Date(Math.floor(at)).toISOString();
}
