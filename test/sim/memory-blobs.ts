import type { Blobs } from '../../src/ports/blobs.ts';

/** Blobs of one run: they outlive every process of it. */
export class MemoryBlobs implements Blobs {
  readonly blobs = new Map<string, Buffer>();

  async write(key: string) {
    const pieces: Buffer[] = [];
    let size = 0;
    return {
      get size() {
        return size;
      },
      append: async (bytes: Uint8Array) => {
        pieces.push(Buffer.from(bytes));
        size += bytes.length;
      },
      commit: async (as?: string) => void this.blobs.set(as ?? key, Buffer.concat(pieces)),
      abort: async () => {},
    };
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    this.blobs.set(key, Buffer.from(bytes));
  }

  async has(key: string): Promise<boolean> {
    return this.blobs.has(key);
  }

  async read(key: string, range?: { offset: number; length: number }): Promise<Buffer | null> {
    const bytes = this.blobs.get(key) ?? null;
    return bytes && range ? bytes.subarray(range.offset, range.offset + range.length) : bytes;
  }

  async delete(key: string): Promise<void> {
    this.blobs.delete(key);
  }

  async *list(prefix: string) {
    for (const [key, { length }] of this.blobs)
      if (key.startsWith(prefix)) yield { key, bytes: length, modifiedAt: 0 };
  }

  locate(key: string): string {
    return `memory:${key}`;
  }

  async close(): Promise<void> {}
}
