import { promisify } from 'node:util';
import { gunzip, gzip, gzipSync } from 'node:zlib';
import { type Batch, type BatchTask, type Report, WIRE_VERSION } from '../../core/batch/batch.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Blobs } from '../../ports/blobs.ts';

/** Lambda carries 6,291,456 bytes each way; the rest is room for what stands around a batch or a report. */
const LAMBDA_PAYLOAD_BYTES = 6_000_000;

/** What is said between the dispatcher and the function: JSON, within what Lambda carries. */

/** Small things stay readable; large ones are a tenth of their size packed. */
type Packed<T> = { plain: T } | { gzip: string };

export type LambdaEvent =
  | {
      kind: 'batch';
      version: typeof WIRE_VERSION;
      batch: Packed<Batch>;
      /** Once there is a blob of this name, the batch is to end with what it has. */
      drainKey: string;
      /** What the worker's clock lacks to be the coordinator's, by which permits are counted. */
      clockOffsetMs: number;
    }
  /** Does nothing for so long: shows what is there, and keeps its environment from taking another. */
  | { kind: 'warm'; waitMs: number };

/** `key`: the part was too much for the answer and lies there, packed. */
type AnswerPart = Packed<Report> | { key: string };

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
): { payload: Buffer; left: BatchTask[] } | null {
  for (let count = batch.tasks.length; count > 0; count = Math.floor(count / 2)) {
    const tasks = batch.tasks.slice(0, count);
    const packed = packSync({ ...batch, tasks });
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
  for (const part of parts) {
    const json = Buffer.from(JSON.stringify(part));
    if (json.length <= PLAIN_BYTES_MAX && json.length + AROUND_BYTES < room) {
      add({ plain: part });
      continue;
    }
    const bytes = await zip(json, FAST);
    if ((bytes.length * 4) / 3 + AROUND_BYTES < room) {
      add({ gzip: bytes.toString('base64') });
      continue;
    }
    // The names of stored parts have what lies between our limit and Lambda's.
    try {
      const key = options.keyOf(part);
      await options.blobs.put(key, bytes);
      add({ key });
    } catch (error) {
      add({ plain: options.onUnstored(part, error) });
    }
  }
  return encoded;
}

/** The reports in an answer, one after the other. */
export async function* decodeParts(
  parts: readonly AnswerPart[],
  { batch, blobs }: { batch: Batch; blobs(): Promise<Blobs> },
): AsyncGenerator<Report> {
  for (const part of parts) {
    const report = 'key' in part ? await readStored(part.key, batch, await blobs()) : await unpack(part);
    if (report.version !== WIRE_VERSION || report.batchId !== batch.id || !Array.isArray(report.outcomes))
      throw new Error('the answer of the function is not a report');
    yield report;
  }
}

async function readStored(key: string, batch: Batch, blobs: Blobs): Promise<Report> {
  if (!key.startsWith(`${batch.archiveKey}-`) || !key.includes(ANSWER))
    throw new Error('the answer names a part at a location that is not allowed');
  const bytes = await blobs.read(key);
  if (!bytes) throw new Error('a part of the answer is missing');
  return readPacked(bytes);
}

/** Under the batch's own prefix, so that parts that were never read are removed with it. */
export function answerKeyOf(batch: Pick<Batch, 'archiveKey'>, { part }: Report): string {
  return `${batch.archiveKey}${ANSWER}${part}.json.gz`;
}

const ANSWER = '-answer-';
