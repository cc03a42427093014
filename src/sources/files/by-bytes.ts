/** The order of UTF-8 bytes, in which object stores list: a position then means the same everywhere. */
export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
