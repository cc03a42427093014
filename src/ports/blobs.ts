/** Stored bytes, by key. Keys come from hashes and ids, never from remote names. */

export interface BlobWriter {
  /** Bytes written so far, so the next append starts there. */
  readonly size: number;
  /** Several pieces follow each other. They must not change before this resolves; after that their memory may be used again. */
  append(bytes: Uint8Array | readonly Uint8Array[]): Promise<void>;
  /** Makes the blob visible, whole: under its key, or under another that was not known before its last byte. */
  commit(as?: string): Promise<void>;
  /** Leaves no trace. */
  abort(): Promise<void>;
}

export interface BlobEntry {
  key: string;
  bytes: number;
  modifiedAt: number;
}

export interface Blobs {
  /** Nothing can be read under the key before `commit`; a committed blob is replaced whole. */
  write(key: string): Promise<BlobWriter>;
  put(key: string, bytes: Uint8Array): Promise<void>;
  has(key: string): Promise<boolean>;
  /** Null when there is no such blob. A range past the end is cut. */
  read(key: string, range?: { offset: number; length: number }): Promise<Buffer | null>;
  delete(key: string): Promise<void>;
  /** Committed blobs below a prefix, in no special order. */
  list(prefix: string): AsyncIterable<BlobEntry>;
  /** Where a person finds a blob: a path or URL. */
  locate(key: string): string;
  close(): Promise<void>;
}
