import { createHmac } from 'node:crypto';
import type { Counters, JobState } from '../model.ts';

/**
 * Webhooks as Standard Webhooks 1.0.0. An endpoint is a URL with the events that it wants. A message is one event for one
 * endpoint: it is stored in the transaction of what it tells, and sent until a server accepts it. Its id is the same at
 * every try.
 */

export const WEBHOOK_EVENTS = [
  'job.completed',
  'job.failed',
  'batch.progress',
  'page.failed',
  'page.completed',
  'record.changed',
  'alert.firing',
  'alert.resolved',
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

/** One for each page would be too many for whoever did not ask for them. */
export const WEBHOOK_EVENTS_DEFAULT: readonly WebhookEvent[] = ['job.completed', 'job.failed'];

/** Those that come while a job runs: a settle looks for endpoints only if there is one that wants any. */
const RUNNING_EVENTS: readonly WebhookEvent[] = [
  'batch.progress',
  'page.failed',
  'page.completed',
  'record.changed',
];

export function wantsRunningEvents(events: readonly WebhookEvent[]): boolean {
  return events.some((event) => RUNNING_EVENTS.includes(event));
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Waits before each try, as the standard proposes them. */
const TRY_DELAYS_MS = [
  0,
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];
/** Up to so much longer, so that what failed together does not come back together. */
const JITTER = 0.2;

/** When the next try is due, after so many; null after the last. `chance` is from 0 to 1. */
export function nextTryAt(tries: number, now: number, chance: number): number | null {
  const delayMs = TRY_DELAYS_MS[tries];
  return delayMs === undefined ? null : Math.round(now + delayMs * (1 + JITTER * chance));
}

/** The old secret still signs for so long after a rotation. */
export const ROTATION_MS = 24 * HOUR;
/** Receivers refuse larger ones. */
const BODY_BYTES_MAX = 20_000;
export const METADATA_BYTES_MAX = 4_000;

export const WEBHOOK_SECRET_BYTES = 32;
const SECRET_PREFIX = 'whsec_';

export function makeWebhookSecret(random: Uint8Array): string {
  return SECRET_PREFIX + Buffer.from(random).toString('base64');
}

/** The header `webhook-signature`: a signature for each secret. */
export function signMessage(
  secrets: readonly string[],
  { id, timestamp, body }: { id: string; timestamp: number; body: string },
): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
    })
    .join(' ');
}

/** What is told, before it is known to whom. */
export interface WebhookMessage {
  type: WebhookEvent;
  data: Readonly<Record<string, unknown>>;
  /** The same message is written once for each endpoint. */
  once?: string;
}

export function webhookBody({ type, data }: WebhookMessage, metadata: unknown, now: number): string {
  const timestamp = new Date(now).toISOString();
  const body = JSON.stringify({ type, timestamp, data: metadata == null ? data : { ...data, metadata } });
  if (Buffer.byteLength(body) < BODY_BYTES_MAX) return body;
  const short = Object.entries(data).filter(([, value]) => JSON.stringify(value).length < 2_000);
  return JSON.stringify({ type, timestamp, data: { ...Object.fromEntries(short), truncated: true } });
}

interface EndedJob {
  id: number;
  name: string;
  run: number;
  state: JobState;
  reason: string | null;
}

type TaskCounts = Pick<
  Counters,
  'accepted' | 'done' | 'unchanged' | 'skipped' | 'dead' | 'pending' | 'leased'
>;

/** A job is told as failed when it ended before its pages did, or when none of them was reached. */
export function jobEndMessage(job: EndedJob, counters: TaskCounts): WebhookMessage {
  const { id, name, run, state, reason } = job;
  const isWithout = counters.accepted > 0 && counters.dead === counters.accepted;
  const isCompleted = state === 'done' && !isWithout;
  const status = state === 'cancelled' ? 'cancelled' : isCompleted ? 'completed' : 'failed';
  const data = { job_id: `job_${id}`, job: `${name}-${run}`, status, reason, counts: countsOf(counters) };
  return { type: isCompleted ? 'job.completed' : 'job.failed', data };
}

/** At each tenth of the pages that are known at that moment; null in between. */
export function progressMessage(
  job: { id: number; pass: number },
  counters: TaskCounts,
): WebhookMessage | null {
  const { accepted, pending, leased } = counters;
  const tenth = accepted === 0 ? 0 : Math.floor((10 * (accepted - pending - leased)) / accepted);
  if (tenth === 0 || tenth === 10) return null;
  const data = { job_id: `job_${job.id}`, percent: tenth * 10, counts: countsOf(counters) };
  return { type: 'batch.progress', data, once: `progress ${job.id} ${job.pass} ${tenth}` };
}

function countsOf({ accepted, done, unchanged, skipped, dead, pending, leased }: TaskCounts): object {
  return { accepted, succeeded: done + unchanged, failed: dead, skipped, pending: pending + leased };
}
