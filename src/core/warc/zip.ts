import { crc32 } from 'node:zlib';

/**
 * ZIP files of stored entries, written from beginning to end. What is in them is compressed already, and readers of WACZ
 * read records right out of the file. Sizes and places over 4 GB, and more than 65,535 entries, are written as ZIP64.
 */

interface ZipEntry {
  name: Buffer;
  offset: number;
  size: number;
  crc: number;
}

const MAX_16 = 0xffff;
const MAX_32 = 0xffff_ffff;
/** 4.5: the version that brought ZIP64. */
const VERSION = 45;
/** Names are UTF-8. */
const UTF8_FLAG = 0x0800;
const ZIP64_EXTRA = 0x0001;

/** Where the next entry begins, and what the directory at the end has to say. */
export class ZipLayout {
  readonly #time: number;
  readonly #entries: ZipEntry[] = [];
  #offset = 0;

  /** `now`: epoch milliseconds, of all entries. */
  constructor(now: number) {
    this.#time = dosTime(new Date(now));
  }

  /** What is written before the bytes of an entry; these must follow. */
  begin(path: string, bytes: Uint8Array): Buffer {
    const entry = {
      name: Buffer.from(path, 'utf8'),
      offset: this.#offset,
      size: bytes.length,
      crc: crc32(bytes),
    };
    const sizes = entry.size >= MAX_32 ? longs(entry.size, entry.size) : [];
    const extra = extraOf(sizes);
    const fixed = Buffer.alloc(30);
    fixed.writeUInt32LE(0x0403_4b50, 0);
    this.#writeCommon(fixed, 4, entry, extra.length);
    const head = Buffer.concat([fixed, entry.name, extra]);
    this.#entries.push(entry);
    this.#offset += head.length + entry.size;
    return head;
  }

  /** The directory of all entries: the last that is written. */
  end(): Buffer {
    const parts = this.#entries.map((entry) => this.#directoryEntry(entry));
    const size = parts.reduce((sum, { length }) => sum + length, 0);
    return Buffer.concat([...parts, this.#endOf(size)]);
  }

  #directoryEntry(entry: ZipEntry): Buffer {
    const sizes = entry.size >= MAX_32 ? longs(entry.size, entry.size) : [];
    const extra = extraOf([...sizes, ...(entry.offset >= MAX_32 ? longs(entry.offset) : [])]);
    const fixed = Buffer.alloc(46);
    fixed.writeUInt32LE(0x0201_4b50, 0);
    // Made on Unix, where files have the rights below.
    fixed.writeUInt16LE((3 << 8) | VERSION, 4);
    this.#writeCommon(fixed, 6, entry, extra.length);
    fixed.writeUInt32LE((0o100644 << 16) >>> 0, 38);
    fixed.writeUInt32LE(Math.min(entry.offset, MAX_32), 42);
    return Buffer.concat([fixed, entry.name, extra]);
  }

  /** The part that both headers of an entry have. */
  #writeCommon(to: Buffer, at: number, { name, size, crc }: ZipEntry, extraLength: number): void {
    to.writeUInt16LE(VERSION, at);
    to.writeUInt16LE(UTF8_FLAG, at + 2);
    to.writeUInt32LE(this.#time, at + 6);
    to.writeUInt32LE(crc, at + 10);
    to.writeUInt32LE(Math.min(size, MAX_32), at + 14);
    to.writeUInt32LE(Math.min(size, MAX_32), at + 18);
    to.writeUInt16LE(name.length, at + 22);
    to.writeUInt16LE(extraLength, at + 24);
  }

  #endOf(directorySize: number): Buffer {
    const count = this.#entries.length;
    const start = this.#offset;
    const end = Buffer.alloc(22);
    end.writeUInt32LE(0x0605_4b50, 0);
    end.writeUInt16LE(Math.min(count, MAX_16), 8);
    end.writeUInt16LE(Math.min(count, MAX_16), 10);
    end.writeUInt32LE(Math.min(directorySize, MAX_32), 12);
    end.writeUInt32LE(Math.min(start, MAX_32), 16);
    if (count < MAX_16 && directorySize < MAX_32 && start < MAX_32) return end;
    const long = Buffer.alloc(56);
    long.writeUInt32LE(0x0606_4b50, 0);
    long.writeBigUInt64LE(44n, 4);
    long.writeUInt16LE((3 << 8) | VERSION, 12);
    long.writeUInt16LE(VERSION, 14);
    [count, count, directorySize, start].forEach((value, index) => {
      long.writeBigUInt64LE(BigInt(value), 24 + 8 * index);
    });
    const locator = Buffer.alloc(20);
    locator.writeUInt32LE(0x0706_4b50, 0);
    locator.writeBigUInt64LE(BigInt(start + directorySize), 8);
    locator.writeUInt32LE(1, 16);
    return Buffer.concat([long, locator, end]);
  }
}

function longs(...values: number[]): Buffer[] {
  return values.map((value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    return bytes;
  });
}

function extraOf(values: Buffer[]): Buffer {
  if (values.length === 0) return Buffer.alloc(0);
  const head = Buffer.alloc(4);
  head.writeUInt16LE(ZIP64_EXTRA, 0);
  head.writeUInt16LE(8 * values.length, 2);
  return Buffer.concat([head, ...values]);
}

/** Time in the low half, date in the high one; every two seconds, from 1980 on. */
function dosTime(date: Date): number {
  const time = (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1);
  const years = Math.max(0, date.getUTCFullYear() - 1980);
  const day = (years << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate();
  return ((day << 16) | time) >>> 0;
}
