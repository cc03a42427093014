import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { Batch, Report, WorkerKind } from '../../core/batch/batch.ts';
import { LIMITS } from '../../core/limits.ts';

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

/** Null for the id of a job that no coordinator made. */
export function coordinatorOf(sentId: string): string | null {
  return /^([0-9a-f]{12})-\d+$/.exec(sentId)?.[1] ?? null;
}

/** A batch that no worker has taken by then is taken back: leases end 30 s after a batch's time. */
export const TAKE_MS = 15_000;
/** For batches whose coordinator is gone. */
export const BATCH_TTL_MS = TAKE_MS + 10_000;
export const REPLY_TTL_MS = 120_000;
export const HEARTBEAT_MS = 2_000;
export const HEARTBEAT_TTL_MS = 8_000;
/** As in `bullmq:stalled` after that: longer than a worker is away when Redis restarts. */
export const LOCK_MS = 60_000;
/** Finished jobs that are kept for people who inspect the queue. */
export const KEPT = { count: 100, age: 3_600 };

export interface FleetKeys {
  batch(sentId: string): string;
  reply(coordinator: string): string;
  workers: string;
  worker(name: string): string;
  /** A channel: ids of coordinators that want their batches back. */
  recall: string;
}

export function fleetKeys(prefix: string): FleetKeys {
  const base = `${prefix}:seine`;
  return {
    batch: (sentId) => `${base}:batch:${sentId}`,
    reply: (coordinator) => `${base}:reply:${coordinator}`,
    workers: `${base}:workers`,
    worker: (name) => `${base}:worker:${name}`,
    recall: `${base}:recall`,
  };
}

/** Takes a batch away and says who has it, both or neither. Keys: batch, reply; values: id of the sent batch, worker, TTL. */
export const TAKE = `
local body = redis.call('GET', KEYS[1])
if body then
  redis.call('DEL', KEYS[1])
  redis.call('XADD', KEYS[2], '*', 'kind', 'taken', 'sentId', ARGV[1], 'body', ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return body
`;

/** What a worker says of a sent batch. `gone`: its batch was not there any more. */
export type Reply =
  | { kind: 'taken'; sentId: string; worker: string }
  | { kind: 'report'; sentId: string; report: Report }
  | { kind: 'lost'; sentId: string; reason: string; blameless: boolean }
  | { kind: 'gone'; sentId: string };

export function encodeReply(reply: Exclude<Reply, { kind: 'taken' }>): (string | Buffer)[] {
  const body =
    reply.kind === 'report'
      ? encodeBody(reply.report)
      : reply.kind === 'lost'
        ? encodeBody({ reason: reply.reason, blameless: reply.blameless })
        : '';
  return ['kind', reply.kind, 'sentId', reply.sentId, 'body', body];
}

/** Throws when it is none. */
export function decodeReply(fields: Buffer[]): Reply {
  const values = new Map<string, Buffer>();
  for (let index = 0; index + 1 < fields.length; index += 2)
    values.set(fields[index]!.toString(), fields[index + 1]!);
  const kind = values.get('kind')?.toString();
  const sentId = values.get('sentId')?.toString() ?? '';
  const body = values.get('body') ?? Buffer.alloc(0);
  if (kind === 'taken') return { kind, sentId, worker: body.toString() };
  if (kind === 'gone') return { kind, sentId };
  if (kind === 'lost')
    return { kind, sentId, ...(decodeBody(body) as { reason: string; blameless: boolean }) };
  if (kind === 'report') return { kind, sentId, report: decodeBody(body) as Report };
  throw new Error(`there is no reply of the kind ${kind}`);
}

export function encodeBatch(batch: Batch): Buffer {
  return encodeBody(batch);
}

export function decodeBatch(body: Buffer): Batch {
  return decodeBody(body) as Batch;
}

/**
 * A report of 120 pages is 80 to 560 KB of JSON, and a twelfth to a twenty-fifth of that as zstd, for a third of the
 * time that writing the JSON takes; deflate takes twice as long for more bytes.
 */
function encodeBody(value: unknown): Buffer {
  return zstdCompressSync(Buffer.from(JSON.stringify(value)), {
    params: { [constants.ZSTD_c_compressionLevel]: 1 },
  });
}

function decodeBody(body: Buffer): unknown {
  return JSON.parse(zstdDecompressSync(body, { maxOutputLength: LIMITS.wireBytesMax }).toString());
}
