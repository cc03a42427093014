/** SQLite keeps hashes as bytes, PostgreSQL as text. */
export type Hash = Uint8Array | string;

export function hexOf(hash: Hash): string {
  return typeof hash === 'string' ? hash : Buffer.from(hash).toString('hex');
}
