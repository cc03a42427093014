import { Readable } from 'node:stream';
import { MissingFileError, type RemoteFiles } from '../src/ports/remote-files.ts';

/** One file in memory, given out in pieces of a size. */
export function memoryFiles(bytes: Buffer, pieceBytes: number): RemoteFiles {
  function* pieces(offset: number) {
    for (let at = offset; at < bytes.length; at += pieceBytes)
      yield bytes.subarray(at, Math.min(bytes.length, at + pieceBytes));
  }
  return {
    async *list(url) {
      yield { url, bytes: bytes.length };
    },
    size: async () => bytes.length,
    async read(_url, offset, length) {
      if (offset < 0 || offset + length > bytes.length)
        throw new MissingFileError('read outside of the file');
      return Buffer.from(bytes.subarray(offset, offset + length));
    },
    stream: async (_url, offset = 0) => Readable.from(pieces(offset), { objectMode: true }),
    close: async () => {},
  };
}
