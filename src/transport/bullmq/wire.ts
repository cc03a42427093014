import type { Batch, Report, WorkerKind } from '../../core/batch/batch.ts';
import type { Delivery } from '../../ports/dispatcher.ts';
import type { MessageSeal, SealContext } from '../message-seal.ts';
import { numberPiece, packJson, unpackJson, unpackPiece } from '../packed-report.ts';

/**
 * What coordinators and workers put into Redis. A batch lies beside its BullMQ job, under a key that the worker which
 * takes it deletes: so it runs once, whatever BullMQ thinks of stalled jobs, and its secrets are gone as soon as it is
 * taken. Reports come back in a stream of the coordinator that sent the batch.
 */

export const QUEUES: Record<WorkerKind, string> = { http: 'seine-http', browser: 'seine-browser' };

/** What a job of BullMQ shows of its batch, and nothing that is secret. */
export interface JobCard {
  batch: number;
  tasks: number;
  hosts: string[];
}
export const CARD_HOSTS_MAX = 5;

/** The id of a sent batch names its coordinator, so that a worker knows whom to answer when it has nothing but the job. */
export function sentIdOf(coordinator: string, number: number): string {
  return `${coordinator}-${number}`;
}

export function isCoordinator(text: string): boolean {
  return /^[0-9a-f]{12}$/.test(text);
}

/** Null for the id of a job that no coordinator made. */
export function coordinatorOf(sentId: string): string | null {
  return /^([0-9a-f]{12})-\d+$/.exec(sentId)?.[1] ?? null;
}

/** A batch that no worker has taken by then is taken back: leases end 30 s after a batch's time. */
export const TAKE_MS = 15_000;
/** For batches whose coordinator is gone. */
export const BATCH_TTL_MS = TAKE_MS + 10_000;
export const REPLY_TTL_MS = 120_000;
/** A worker whose connection broke while it took a batch is back by then, or the batch is too late. */
export const TAKEN_TTL_MS = 30_000;
export const HEARTBEAT_MS = 2_000;
export const HEARTBEAT_TTL_MS = 8_000;
/** As in `bullmq:stalled` after that: longer than a worker is away when Redis restarts. */
export const LOCK_MS = 60_000;
/** Finished jobs that are kept for people who inspect the queue. */
export const KEPT = { count: 100, age: 3_600 };

export interface FleetKeys {
  prefix: string;
  batch(sentId: string): string;
  /** A batch that this worker took, until it has got it. */
  taken(sentId: string, worker: string): string;
  reply(coordinator: string): string;
  workers: string;
  worker(name: string): string;
  /** There when somebody wants the worker to take no more batches. */
  drain(worker: string): string;
  /** A channel: ids of coordinators that want their batches back. */
  recall: string;
}

export function fleetKeys(prefix: string): FleetKeys {
  const base = `${prefix}:seine`;
  return {
    prefix,
    batch: (sentId) => `${base}:batch:${sentId}`,
    taken: (sentId, worker) => `${base}:taken:${sentId}:${worker}`,
    reply: (coordinator) => `${base}:reply:${coordinator}`,
    workers: `${base}:workers`,
    worker: (name) => `${base}:worker:${name}`,
    drain: (worker) => `${base}:drain:${worker}`,
    recall: `${base}:recall`,
  };
}

/**
 * Takes a batch away and says who has it, both or neither. When the answer is lost, the worker's connection asks once more:
 * so the batch stays under a key that only this worker asks for, until the worker has it (`taken`).
 * Keys: batch, reply, taken; values: id of the sent batch, body, TTL of the reply, TTL of the taken batch.
 */
export const TAKE = `
local body = redis.call('GET', KEYS[1])
if body then
  redis.call('RENAME', KEYS[1], KEYS[3])
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
  redis.call('XADD', KEYS[2], '*', 'kind', 'taken', 'sentId', ARGV[1], 'body', ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  return body
end
return redis.call('GET', KEYS[3])
`;

/** Why a worker lost a batch, as the threads of its process say. */
export type LossReason = Omit<Extract<Delivery, { kind: 'lost' }>, 'kind' | 'batchId'>;

export function reasonOf({ reason, blameless, ended, running }: LossReason): LossReason {
  return {
    reason,
    ...(blameless ? { blameless } : {}),
    ...(ended ? { ended } : {}),
    ...(running ? { running } : {}),
  };
}

/** What a worker says of a sent batch. `gone`: its batch was not there any more; `refused`: it is not a batch for it. */
export type Reply =
  | { kind: 'taken'; sentId: string; worker: string }
  | { kind: 'report'; sentId: string; report: Report }
  | ({ kind: 'lost'; sentId: string } & LossReason)
  | { kind: 'gone'; sentId: string }
  | { kind: 'refused'; sentId: string; reason: string };

const REPLY_KINDS = ['taken', 'report', 'lost', 'gone', 'refused'] as const;

/** A reply as Redis has it: its body may be anyone's. */
export interface RawReply {
  kind: Reply['kind'];
  sentId: string;
  body: Buffer;
}

/** What a reply is bound to besides its kind: the fleet, what was sent, and the batch as the coordinator sent it. */
export type AboutBatch = { id: number; job: { epoch: string } };

function replyContext(
  kind: Reply['kind'],
  sentId: string,
  prefix: string,
  batch: AboutBatch | null,
): SealContext {
  const base = [`reply ${kind}`, prefix, sentId] as const;
  return batch === null ? base : [...base, String(batch.id), batch.job.epoch];
}

/** Those that are about what a worker has read. */
function isAboutBatch(kind: Reply['kind']): boolean {
  return kind === 'report' || kind === 'lost';
}

interface ReplySealing {
  seal: MessageSeal;
  keys: FleetKeys;
  batch: AboutBatch | null;
}

/** Short ones: packing takes longer than all else. */
export function sealReply(
  { kind, sentId, ...body }: Exclude<Reply, { kind: 'report' }>,
  { seal, keys, batch }: ReplySealing,
): Buffer {
  const context = replyContext(kind, sentId, keys.prefix, isAboutBatch(kind) ? batch : null);
  return seal.seal(context, Buffer.from(JSON.stringify(body)));
}

/** A piece of a report (`packReport`), and which part of the whole it is. */
export function sealPiece(
  piece: Uint8Array<ArrayBuffer>,
  { part, sentId }: { part: number; sentId: string },
  { seal, keys, batch }: ReplySealing,
): Buffer {
  return seal.seal(replyContext('report', sentId, keys.prefix, batch), numberPiece(piece, part));
}

/** The fields of a reply in its stream. */
export function replyFields(kind: Reply['kind'], sentId: string, body: Buffer): (string | Buffer)[] {
  return ['kind', kind, 'sentId', sentId, 'body', body];
}

/** Throws when it is none. */
export function readReply(fields: Buffer[]): RawReply {
  const values = new Map<string, Buffer>();
  for (let index = 0; index + 1 < fields.length; index += 2)
    values.set(fields[index]!.toString(), fields[index + 1]!);
  const name = values.get('kind')?.toString();
  const kind = REPLY_KINDS.find((each) => each === name);
  if (!kind) throw new Error('there is no reply of this kind');
  return {
    kind,
    sentId: values.get('sentId')?.toString() ?? '',
    body: values.get('body') ?? Buffer.alloc(0),
  };
}

/** Throws when its signature is not that of a worker which has this batch. The report in it is still to be checked. */
export function openReply(
  { kind, sentId, body }: RawReply,
  { seal, keys, batch }: { seal: MessageSeal; keys: FleetKeys; batch: AboutBatch },
): Reply {
  const context = replyContext(kind, sentId, keys.prefix, isAboutBatch(kind) ? batch : null);
  const opened = seal.open(context, body);
  if (kind === 'report') return { kind, sentId, report: unpackPiece(opened) as Report };
  const said = JSON.parse(opened.toString()) as Record<string, unknown> | null;
  if (kind === 'gone') return { kind, sentId };
  if (kind === 'taken' && typeof said?.worker === 'string') return { kind, sentId, worker: said.worker };
  if (kind === 'refused' && typeof said?.reason === 'string') return { kind, sentId, reason: said.reason };
  if (kind === 'lost' && typeof said?.reason === 'string')
    return { kind, sentId, ...lossOf(said.reason, said) };
  throw new Error('its body is not that of a reply');
}

/** As read from Redis: what is not of the right kind is left out. */
function lossOf(reason: string, said: Record<string, unknown>): LossReason {
  const running = Array.isArray(said.running) ? said.running.filter(Number.isSafeInteger) : null;
  return {
    reason,
    ...(said.blameless === true ? { blameless: true } : {}),
    ...(said.ended === true ? { ended: true } : {}),
    ...(running ? { running } : {}),
  };
}

function batchContext(sentId: string, needs: WorkerKind, { prefix }: FleetKeys): SealContext {
  return ['batch', prefix, QUEUES[needs], sentId];
}

export function sealBatch(
  batch: Batch,
  { seal, keys, sentId, now }: { seal: MessageSeal; keys: FleetKeys; sentId: string; now: number },
): Buffer {
  return seal.seal(batchContext(sentId, batch.needs, keys), packJson({ sentAt: now, batch }));
}

/** Older than any batch that still waits in Redis, with clocks that differ a little. */
const BATCH_AGE_MS_MAX = BATCH_TTL_MS + 5_000;

/** Throws when it is not a batch that a coordinator of this fleet has just put into this queue. Its shape is still to be checked. */
export function openBatch(
  body: Buffer,
  options: { seal: MessageSeal; keys: FleetKeys; sentId: string; queue: WorkerKind; now: number },
): unknown {
  const { seal, keys, sentId, queue, now } = options;
  const message = unpackJson(seal.open(batchContext(sentId, queue, keys), body)) as {
    sentAt?: unknown;
    batch?: unknown;
  } | null;
  const ageMs = now - Number(message?.sentAt);
  // Kept by somebody, and sent again: its permits are over, and its requests were sent.
  if (!(Math.abs(ageMs) <= BATCH_AGE_MS_MAX))
    throw new Error(
      `it was sent ${Math.round(ageMs / 1_000)} s ago: it was sent twice, or the clocks of the machines differ`,
    );
  return message?.batch;
}
