import { inflateRawSync } from 'node:zlib';
import { parseRecord, WarcError } from './warc-reader.ts';

/** The records of a WARC file whose records are gzip members of their own, as Seine writes them. */

export interface MemberRecord {
  record: ReturnType<typeof parseRecord>;
  /** Of the member in the file. */
  offset: number;
  length: number;
}

const HEADER_BYTES = 10;
const TRAILER_BYTES = 8;
/** A page of the largest size that a job may allow, and its headers. */
const RECORD_BYTES_MAX = 1024 ** 3 + 1024 ** 2;

/** Node's types do not know the `info` option, which says how much input was used. */
interface Inflated {
  buffer: Buffer;
  engine: { bytesWritten: number };
}

/** Throws `WarcError` at the first that is broken. */
export function* membersOf(file: Buffer): Generator<MemberRecord> {
  let offset = 0;
  while (offset < file.length) {
    if (file.readUInt16BE(offset) !== 0x1f8b || file[offset + 3] !== 0)
      throw new WarcError(`at ${offset}: not a gzip member without extra fields`);
    const start = offset + HEADER_BYTES;
    const options = { info: true, maxOutputLength: RECORD_BYTES_MAX };
    const { buffer, engine } = inflate(file.subarray(start), options, offset);
    const length = HEADER_BYTES + engine.bytesWritten + TRAILER_BYTES;
    if (offset + length > file.length) throw new WarcError(`at ${offset}: the file ends within a record`);
    yield { record: parseRecord(buffer), offset, length };
    offset += length;
  }
}

function inflate(bytes: Buffer, options: object, offset: number): Inflated {
  try {
    const result: unknown = inflateRawSync(bytes, options);
    return result as Inflated;
  } catch (cause) {
    throw new WarcError(`at ${offset}: the record cannot be decompressed`, { cause });
  }
}
