import type { Readable } from 'node:stream';
import { SeineError } from '../core/errors.ts';

export interface RemoteFile {
  url: string;
  /** Null where it is not known without asking for the file itself. */
  bytes: number | null;
}

/** It is not there: never was, or was removed since it was listed. Other trouble is a plain SeineError. */
export class MissingFileError extends SeineError {}

/** Files to read, wherever they are: on the disk, over http(s), in an object store. `url` is the name in the job. */
export interface RemoteFiles {
  /**
   * Files whose name fits `url`, where `*` stands for any part of a name and `**` for folders too; in the order of
   * their UTF-8 bytes.
   */
  list(url: string): AsyncIterable<RemoteFile>;
  size(url: string): Promise<number>;
  /** Exactly `length` bytes; fewer are an error. */
  read(url: string, offset: number, length: number): Promise<Buffer>;
  stream(url: string, offset?: number): Promise<Readable>;
  close(): Promise<void>;
}
