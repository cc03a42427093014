import type { ParquetPiece } from './parquet-reader.ts';

/** Between the thread that unpacks Parquet and the one that reads files for it. */

export type ToParquet =
  | { kind: 'open'; size: number }
  | { kind: 'rows'; columns: string[]; from: number }
  | { kind: 'next' }
  | { kind: 'bytes'; id: number; bytes: Uint8Array };

/** `read` asks for bytes in between; everything else answers. */
export type FromParquet =
  | { kind: 'read'; id: number; offset: number; length: number }
  | { kind: 'opened'; columns: string[] }
  | { kind: 'piece'; piece: ParquetPiece }
  | { kind: 'end' }
  | { kind: 'broken'; reason: string };

export type ParquetAnswer = Exclude<FromParquet, { kind: 'read' }>;
