import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { Report } from '../core/batch/batch.ts';
import { splitReport } from '../core/batch/report.ts';
import { LIMITS } from '../core/limits.ts';

/**
 * A report as the bytes that go to another machine. The thread that made the report packs it: its process would have to read
 * all of it, only to write it again, 0.6 ms for a batch of 120 pages.
 */
export interface PackedReport {
  batchId: number;
  /** How many it has. */
  outcomes: number;
  /** Huge reports in pieces, each of which Redis and the coordinator can carry. */
  pieces: Uint8Array<ArrayBuffer>[];
}

/** The number of a piece, which is known when it is sent: parts of other carriers may go before it. */
const NUMBER_BYTES = 4;

export function packReport(report: Report): PackedReport {
  const pieces = splitReport(report, LIMITS.partItemsMax).map(packPiece);
  return { batchId: report.batchId, outcomes: report.outcomes.length, pieces };
}

export function packPiece(report: Report): Uint8Array<ArrayBuffer> {
  const body = packJson(report);
  const bytes = new Uint8Array(NUMBER_BYTES + body.length);
  bytes.set(body, NUMBER_BYTES);
  return bytes;
}

export function numberPiece(piece: Uint8Array<ArrayBuffer>, part: number): Buffer {
  const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
  bytes.writeUInt32BE(part);
  return bytes;
}

/** Throws when it is none. What it says is still to be checked. */
export function unpackPiece(bytes: Buffer): unknown {
  const part = bytes.readUInt32BE();
  const said = unpackJson(bytes.subarray(NUMBER_BYTES));
  return typeof said === 'object' && said !== null ? { ...said, part } : said;
}

/**
 * A report of 120 pages is 80 to 560 KB of JSON, and a twelfth to a twenty-fifth of that as zstd, for a third of the
 * time that writing the JSON takes; deflate takes twice as long for more bytes.
 */
export function packJson(value: unknown): Buffer {
  return zstdCompressSync(Buffer.from(JSON.stringify(value)), {
    params: { [constants.ZSTD_c_compressionLevel]: 1 },
  });
}

/** Most messages fit into one: several take a third longer. */
const CHUNK_BYTES = 128 * 1024;

export function unpackJson(bytes: Buffer): unknown {
  const options = { maxOutputLength: LIMITS.wireBytesMax, chunkSize: CHUNK_BYTES };
  return JSON.parse(zstdDecompressSync(bytes, options).toString());
}
