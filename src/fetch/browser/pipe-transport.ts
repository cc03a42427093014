import type { Readable, Writable } from 'node:stream';
import type { ConnectOverCDPTransport } from 'playwright-core';

/** Messages to and from the browser: JSON, each ended by a zero byte. */
export class PipeTransport implements ConnectOverCDPTransport {
  onmessage?: (message: object) => void;
  onclose?: (reason?: string) => void;
  readonly #to: Writable;
  #pending: Buffer[] = [];
  #isClosed = false;

  constructor(to: Writable, from: Readable) {
    this.#to = to;
    from.on('data', (bytes: Buffer) => this.#take(bytes));
    from.once('close', () => this.#end());
    to.once('close', () => this.#end());
  }

  send(message: object): void {
    if (!this.#isClosed) this.#to.write(`${JSON.stringify(message)}\0`);
  }

  close(): void {
    this.#to.end();
  }

  #take(bytes: Buffer): void {
    let start = 0;
    for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, start)) {
      const piece = bytes.subarray(start, end);
      this.#deliver(this.#pending.length === 0 ? piece : Buffer.concat([...this.#pending, piece]));
      this.#pending = [];
      start = end + 1;
    }
    if (start < bytes.length) this.#pending.push(bytes.subarray(start));
  }

  /** Each in a turn of its own, as Playwright expects it. */
  #deliver(bytes: Buffer): void {
    setImmediate(() => {
      if (!this.#isClosed) this.onmessage?.(JSON.parse(bytes.toString()) as object);
    });
  }

  #end(): void {
    if (this.#isClosed) return;
    setImmediate(() => {
      this.#isClosed = true;
      this.onclose?.();
    });
  }
}
