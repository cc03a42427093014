import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../../core/errors.ts';
import type { RemoteFiles } from '../../ports/remote-files.ts';
import { BrokenFileError } from '../rows/raw-row.ts';
import { isNamedGzip } from './file-format.ts';

/** The text of a file, unpacked. */
export interface TextFile {
  chunks: AsyncIterable<Buffer>;
  /** Packed text can be entered only at its start. */
  gzip: boolean;
  close(): void;
}

/** Whether it is gzip is told by its first bytes: servers unpack, and people rename. */
export async function openText(files: Pick<RemoteFiles, 'stream'>, url: string): Promise<TextFile> {
  const input = await files.stream(url);
  try {
    const { head, all } = await peek(input, 2);
    const gzip = head[0] === 0x1f && head[1] === 0x8b;
    if (!gzip && head.length > 0 && isNamedGzip(url))
      throw new BrokenFileError('its name ends in .gz, but it is not gzip');
    return { chunks: gzip ? gunzip(all) : all, gzip, close: () => void input.destroy() };
  } catch (error) {
    input.destroy();
    throw error;
  }
}

/** Text has no NUL. Who gives an image or a program as a list gets one sentence, and not one for each of its lines. */
export function refuseBinary(head: Buffer): void {
  const [first, second] = head;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff))
    throw new BrokenFileError('it is UTF-16: save it as UTF-8');
  if (head.includes(0)) throw new BrokenFileError('it is not text, and so not a list of URLs');
}

/** Plain text from the middle. */
export async function openTextAt(
  files: Pick<RemoteFiles, 'stream'>,
  url: string,
  offset: number,
): Promise<TextFile> {
  const input = await files.stream(url, offset);
  return { chunks: input, gzip: false, close: () => void input.destroy() };
}

/** At least `bytes` of the beginning, where there are as many, and everything again from the start, trouble too. */
export async function peek(
  input: AsyncIterable<Buffer>,
  bytes: number,
): Promise<{ head: Buffer; all: AsyncIterable<Buffer> }> {
  const iterator = input[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  let ended = false;
  let failure: { error: unknown } | null = null;
  while (head.length < bytes && !ended && !failure) {
    try {
      const { done, value } = await iterator.next();
      if (done) ended = true;
      else head = head.length === 0 ? value : Buffer.concat([head, value]);
    } catch (error) {
      if (head.length === 0) throw error;
      failure = { error };
    }
  }
  async function* whole(): AsyncIterable<Buffer> {
    if (head.length > 0) yield head;
    if (failure) throw failure.error;
    while (!ended) {
      const { done, value } = await iterator.next();
      if (done) return;
      yield value;
    }
  }
  return { head, all: whole() };
}

async function* gunzip(packed: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const input = Readable.from(packed, { objectMode: false });
  // Whoever reads the result gets the error; without a listener here it would end the process.
  const output = pipeline(input, createGunzip(), () => {});
  try {
    yield* output as AsyncIterable<Buffer>;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code?.startsWith('Z_')) throw new BrokenFileError(`its gzip data is damaged: ${messageOf(error)}`);
    throw error;
  } finally {
    output.destroy();
  }
}
