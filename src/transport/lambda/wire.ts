import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip, gzipSync } from 'node:zlib';
import { type Batch, type BatchTask, type Report, WIRE_VERSION } from '../../core/batch/batch.ts';
import { makeReportCheck } from '../../core/batch/check-report.ts';
import { unsettledOf } from '../../core/batch/report.ts';
import { isList, isObject } from '../../core/batch/shape.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { MessageSeal, SealContext } from '../message-seal.ts';

/** Lambda carries 6,291,456 bytes each way; the rest is room for what stands around a batch or a report. */
const LAMBDA_PAYLOAD_BYTES = 6_000_000;
/** With the names of parts that lie elsewhere. */
const REPLY_BYTES_MAX = 6_291_456;

/** What is said between the dispatcher and the function: JSON, within what Lambda carries. */

/** Small things stay readable; large ones are a tenth of their size packed. */
type Packed<T> = { plain: T } | { gzip: string };
/** Packed, signed and encrypted, where coordinator and function have a fleet key. */
type Sealed = { sealed: string };

export type LambdaEvent =
  | {
      kind: 'batch';
      version: typeof WIRE_VERSION;
      batch: Packed<Batch> | Sealed;
      /** Once there is a blob of this name, the batch is to end with what it has. */
      drainKey: string;
      /** What the worker's clock lacks to be the coordinator's, by which permits are counted. */
      clockOffsetMs: number;
    }
  /** Does nothing for so long: shows what is there, and keeps its environment from taking another. */
  | { kind: 'warm'; waitMs: number };

/** `key`: the part was too much for the answer and lies there, packed or sealed, with this hash. */
type AnswerPart = Packed<Report> | Sealed | { key: string; sha256: string };

export type LambdaAnswer =
  | { kind: 'parts'; parts: AnswerPart[] }
  /** Nothing of the batch was begun, and nothing will be before an operator has put it right. */
  | { kind: 'refused'; reason: string }
  | { kind: 'here'; here: LambdaStatus };

export interface LambdaStatus {
  seine: string;
  wire: number;
  environment: string;
  /** It has just been made. */
  cold: boolean;
  /** Where it keeps pages; null when it is not set. */
  blobs: string | null;
  /** Ids of its fleet keys. */
  keyIds?: string[];
  /** Whether it can show pages in a browser. */
  browser: boolean;
  /** Epoch milliseconds, by its own clock. */
  startedAt: number;
  endedAt: number;
}

/** Below this, packing costs more than it saves. */
const PLAIN_BYTES_MAX = 32 * 1024;
const FAST = { level: 1 };
/** Of a part, besides its bytes. */
const AROUND_BYTES = 64;

const zip = promisify(gzip);
const unzip = promisify(gunzip);

/** The tasks that fit into one call, and those that must wait for the next; null when not even one fits. */
export function encodeBatch(
  batch: Batch,
  about: { drainKey: string; clockOffsetMs: number },
  seal: MessageSeal,
): { payload: Buffer; left: BatchTask[] } | null {
  for (let count = batch.tasks.length; count > 0; count = Math.floor(count / 2)) {
    const tasks = batch.tasks.slice(0, count);
    const packed = seal.isSigned ? sealBatch({ ...batch, tasks }, seal) : packSync({ ...batch, tasks });
    const event: LambdaEvent = { kind: 'batch', version: WIRE_VERSION, batch: packed, ...about };
    const payload = Buffer.from(JSON.stringify(event));
    if (payload.length <= LAMBDA_PAYLOAD_BYTES) return { payload, left: batch.tasks.slice(count) };
  }
  return null;
}

function packSync<T>(value: T): Packed<T> {
  const json = JSON.stringify(value);
  if (json.length <= PLAIN_BYTES_MAX) return { plain: value };
  return { gzip: gzipSync(json, FAST).toString('base64') };
}

const BATCH_CONTEXT: SealContext = ['lambda batch'];

function sealBatch(batch: Batch, seal: MessageSeal): Sealed {
  const bytes = gzipSync(JSON.stringify({ sentAt: Date.now(), batch }), FAST);
  return { sealed: seal.seal(BATCH_CONTEXT, bytes).toString('base64') };
}

/** As long as AWS accepts a signed request, with clocks that differ a little. */
const BATCH_AGE_MS_MAX = 6 * 60_000;

/** Throws when it is not signed where that is asked for, or was sent long ago. Its shape is still to be checked. */
export async function decodeBatch(
  packed: Packed<Batch> | Sealed,
  seal: MessageSeal,
  now: number,
): Promise<unknown> {
  if (!('sealed' in packed)) {
    if (seal.isSigned)
      throw new Error('the function has a fleet key, and the run has none: set SEINE_FLEET_KEY');
    return unpack(packed);
  }
  if (!seal.isSigned)
    throw new Error(
      'the run has a fleet key, and the function has none: deploy it again with SEINE_FLEET_KEY',
    );
  const opened = seal.open(BATCH_CONTEXT, Buffer.from(packed.sealed, 'base64'));
  const message = await readPacked<{ sentAt?: unknown; batch?: unknown } | null>(opened);
  const ageMs = now - Number(message?.sentAt);
  if (!(Math.abs(ageMs) <= BATCH_AGE_MS_MAX))
    throw new Error(
      `the batch was sent ${Math.round(ageMs / 1_000)} s ago: it was sent twice, or the clocks differ`,
    );
  return message?.batch;
}

/** A part of a report is good for the batch as it was sent, and for its place in the answer. */
function partContext({ id, archiveKey, job }: Batch, index: number): SealContext {
  return ['lambda report', archiveKey, String(id), job.epoch, String(index)];
}

export async function unpack<T>(packed: Packed<T>): Promise<T> {
  return 'plain' in packed ? packed.plain : readPacked(Buffer.from(packed.gzip, 'base64'));
}

async function readPacked<T>(bytes: Buffer): Promise<T> {
  const json = await unzip(bytes, { maxOutputLength: LIMITS.wireBytesMax });
  return JSON.parse(json.toString());
}

/** Parts that the answer has no room for go to the blobs; `onUnstored` says what to answer where that fails. */
export async function encodeParts(
  parts: readonly Report[],
  options: {
    blobs: Blobs;
    seal: MessageSeal;
    /** As it came. */
    batch: Batch;
    keyOf(part: Report): string;
    onUnstored(part: Report, error: unknown): Report;
    bytesMax?: number;
  },
): Promise<AnswerPart[]> {
  const encoded: AnswerPart[] = [];
  let room = options.bytesMax ?? LAMBDA_PAYLOAD_BYTES;
  const add = (part: AnswerPart) => {
    room -= Buffer.byteLength(JSON.stringify(part)) + 1;
    encoded.push(part);
  };
  const { seal, batch } = options;
  const sealed = (bytes: Buffer, index: number) => seal.seal(partContext(batch, index), bytes);
  for (const [index, part] of parts.entries()) {
    const json = Buffer.from(JSON.stringify(part));
    if (!seal.isSigned && json.length <= PLAIN_BYTES_MAX && json.length + AROUND_BYTES < room) {
      add({ plain: part });
      continue;
    }
    const zipped = await zip(json, FAST);
    const bytes = seal.isSigned ? sealed(zipped, index) : zipped;
    if ((bytes.length * 4) / 3 + AROUND_BYTES < room) {
      const text = bytes.toString('base64');
      add(seal.isSigned ? { sealed: text } : { gzip: text });
      continue;
    }
    // The names of stored parts have what lies between our limit and Lambda's.
    try {
      const key = options.keyOf(part);
      await options.blobs.put(key, bytes);
      add({ key, sha256: hash('sha256', bytes, 'hex') });
    } catch (error) {
      const instead = options.onUnstored(part, error);
      if (!seal.isSigned) add({ plain: instead });
      else add({ sealed: sealed(await zip(JSON.stringify(instead), FAST), index).toString('base64') });
    }
  }
  return encoded;
}

interface DecodeOptions {
  batch: Batch;
  /** Another coordinator sent it, and may have settled parts of its report. */
  isAdopted?: boolean;
  seal: MessageSeal;
  blobs(): Promise<Blobs>;
}

/** The reports in an answer, one after the other, each checked as a whole. */
export async function* decodeParts(
  parts: readonly AnswerPart[],
  options: DecodeOptions,
): AsyncGenerator<Report> {
  const { batch } = options;
  const problemOf = makeReportCheck(batch);
  for (const [index, part] of parts.entries()) {
    const said = await readPart(part, index, options);
    const report = options.isAdopted ? unsettledOf(batch, said as Report) : said;
    const problem = problemOf(report);
    if (problem !== null) throw new Error(`the function sent a report that is not valid: ${problem}`);
    const checked = report as Report;
    if (checked.batchId !== batch.id) throw new Error('the function sent a report on another batch');
    yield checked;
  }
}

async function readPart(part: AnswerPart, index: number, options: DecodeOptions): Promise<unknown> {
  const { batch, seal } = options;
  if (typeof part !== 'object' || part === null)
    throw new Error('the answer of the function is not a report');
  const stored = 'key' in part ? await readStored(part, batch, await options.blobs()) : null;
  if (seal.isSigned) {
    const message = stored ?? ('sealed' in part ? Buffer.from(part.sealed, 'base64') : Buffer.alloc(0));
    return readPacked(seal.open(partContext(batch, index), message));
  }
  if (stored) return readPacked(stored);
  if ('plain' in part || 'gzip' in part) return unpack(part);
  throw new Error('the answer of the function is not a report');
}

/** Whoever can write to the blobs could have put something else there. */
async function readStored(
  part: { key: string; sha256: string },
  batch: Batch,
  blobs: Blobs,
): Promise<Buffer> {
  const { key, sha256 } = part;
  if (typeof key !== 'string' || !key.startsWith(`${batch.archiveKey}-`) || !key.includes(ANSWER))
    throw new Error('the answer names a part at a location that is not allowed');
  const bytes = await blobs.read(key);
  if (!bytes) throw new Error('a part of the answer is missing');
  if (hash('sha256', bytes, 'hex') !== sha256) throw new Error('a part of the answer was changed');
  return bytes;
}

/**
 * Where a function leaves its whole answer as well, for a coordinator that takes the batch over: the connection of the call
 * ends with whoever made it. Only where parts are signed, as others may write to the blobs.
 */
export function replyKeyOf({ archiveKey }: Pick<Batch, 'archiveKey'>): string {
  return `${archiveKey}-reply.json`;
}

/** The parts of an answer that was left; null while there is none. Throws when it is something else. */
export async function readReply(batch: Batch, blobs: Pick<Blobs, 'read'>): Promise<AnswerPart[] | null> {
  const bytes = await blobs.read(replyKeyOf(batch), { offset: 0, length: REPLY_BYTES_MAX + 1 });
  if (!bytes) return null;
  if (bytes.length > REPLY_BYTES_MAX) throw new Error('the answer that the function left is too large');
  const answer: unknown = JSON.parse(bytes.toString());
  if (!isObject(answer) || answer.kind !== 'parts' || !isList(answer.parts))
    throw new Error('the answer that the function left is not a report');
  return answer.parts as AnswerPart[];
}

/** What a function writes into its log before a batch, so that a call whose answer never came is found there. */
export function logLineOf({ id, job }: Pick<Batch, 'id' | 'job'>): string {
  return `batch ${id} of job ${job.name}`;
}

/** Under the batch's own prefix, so that parts that were never read are removed with it. */
export function answerKeyOf(batch: Pick<Batch, 'archiveKey'>, { part }: Report): string {
  return `${batch.archiveKey}${ANSWER}${part}.json.gz`;
}

const ANSWER = '-answer-';
