import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../core/errors.ts';
import type { ByteSource } from './parquet-column.ts';
import type { FromParquet, ParquetAnswer, ToParquet } from './parquet-messages.ts';
import { openParquet, type ParquetFile, type ParquetPiece } from './parquet-reader.ts';

/**
 * Unpacks Parquet in a thread of its own: a damaged file may fill the heap or never end, and then only this thread
 * is lost. It holds no files: it asks for bytes.
 */

const waiting = new Map<number, (bytes: Buffer) => void>();
let reads = 0;
let file: ParquetFile | null = null;
let pieces: AsyncIterator<ParquetPiece> | null = null;

function post(message: FromParquet): void {
  parentPort!.postMessage(message);
}

function bytesOfSize(size: number): ByteSource {
  return {
    size,
    read(offset, length) {
      const id = ++reads;
      post({ kind: 'read', id, offset, length });
      return new Promise((resolve) => waiting.set(id, resolve));
    },
  };
}

async function answer(message: Exclude<ToParquet, { kind: 'bytes' }>): Promise<ParquetAnswer> {
  if (message.kind === 'open') {
    pieces = null;
    file = null;
    file = await openParquet(bytesOfSize(message.size));
    return { kind: 'opened', columns: file.columns };
  }
  if (message.kind === 'rows') pieces = file!.pieces(message.columns, message.from)[Symbol.asyncIterator]();
  const { done, value } = await pieces!.next();
  return done ? { kind: 'end' } : { kind: 'piece', piece: value };
}

/** What JavaScript says of bytes that make no sense (`Cannot read properties of undefined`) helps no reader of a file. */
function reasonOf(error: unknown): string {
  const isOfJavaScript =
    !(error instanceof Error) ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof SyntaxError ||
    error instanceof ReferenceError;
  if (isOfJavaScript) return file === null ? 'its footer is damaged' : 'its data is damaged';
  return messageOf(error);
}

parentPort!.on('message', (message: ToParquet) => {
  if (message.kind === 'bytes') {
    const { buffer, byteOffset, byteLength } = message.bytes;
    waiting.get(message.id)?.(Buffer.from(buffer, byteOffset, byteLength));
    waiting.delete(message.id);
    return;
  }
  answer(message).then(post, (error: unknown) => post({ kind: 'broken', reason: reasonOf(error) }));
});
