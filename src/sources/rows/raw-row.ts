import type { SourceRow, SourceTask } from '../../ports/source.ts';

/** One row of one file, with every task it makes. */
export interface RawRow {
  place: string;
  /** Where to go on after this row within the file; plain JSON, known to its reader alone. */
  at: unknown;
  row: SourceRow['row'] | SourceTask[];
}

/** Reads the files of a source, one after the other. */
export interface FileReader {
  /** From the start when `at` is null. What cannot be understood ends it with a BrokenFileError. */
  rows(url: string, at: unknown): AsyncIterable<RawRow>;
  /** Throws a SeineError when the file cannot be what the source says; reads no more than its beginning. */
  check(url: string): Promise<void>;
  close(): Promise<void>;
}

/** The bytes are there, but they are not what they should be. Reading again would not help. */
export class BrokenFileError extends Error {}
