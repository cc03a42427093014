import { randomBytes } from 'node:crypto';
import { createWriteStream, realpathSync, rmSync, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { S3Settings } from '../../aws/s3/s3-client.ts';
import { isS3Url } from '../../aws/s3/s3-url.ts';
import { messageOf, SeineError } from '../../core/errors.ts';
import { cleanLines } from '../../tui/text.ts';
import { watchSignals } from '../commands/run/watch-signals.ts';

/** Where an export goes. Nothing is there under its name before `finish`. */
export interface Destination {
  /** Waits while the reader is slower than we are. */
  write(piece: string | Uint8Array): Promise<void>;
  finish(): Promise<void>;
  /** Leaves no trace, where that is possible. */
  abort(): Promise<void>;
}

/** A stream whose bytes become visible at once: `done` after its end, or never. */
interface Upload {
  stream: Writable;
  done(): Promise<void>;
  abort(): Promise<void>;
}

/** `output`: a path, an s3:// URL, or nothing or `-` for standard output. A name that ends in .gz is compressed. */
export async function openDestination(
  output: string | undefined,
  stdout: Writable,
  s3: S3Settings,
): Promise<Destination> {
  if (isStandardOutput(output)) return new StreamDestination('standard output', stdout, null);
  const upload = await openUpload(output, s3);
  if (!output.endsWith('.gz')) return new StreamDestination(output, upload.stream, upload);
  const gzip = createGzip();
  upload.stream.on('error', (error) => gzip.destroy(error));
  gzip.pipe(upload.stream);
  return new StreamDestination(output, gzip, upload);
}

async function openUpload(output: string, s3: S3Settings): Promise<Upload> {
  try {
    if (isS3Url(output)) return (await import('../../aws/s3/s3-upload.ts')).uploadTo(output, s3);
    return openFile(output);
  } catch (error) {
    throw cannotWrite(output, error);
  }
}

function cannotWrite(name: string, error: unknown): SeineError {
  if (error instanceof SeineError) return error;
  return new SeineError(`cannot write ${name}: ${messageOf(error)}`, { cause: error });
}

export function isStandardOutput(output: string | undefined): output is undefined | '-' {
  return output === undefined || output === '-';
}

class StreamDestination implements Destination {
  readonly #name: string;
  readonly #stream: Writable;
  /** Null for a stream that is not ours to end. */
  readonly #upload: Upload | null;
  #failure: Error | null = null;

  constructor(name: string, stream: Writable, upload: Upload | null) {
    this.#name = name;
    this.#stream = stream;
    this.#upload = upload;
    stream.on('error', (error) => {
      this.#failure ??= error;
    });
  }

  async write(piece: string | Uint8Array): Promise<void> {
    // Cells come from pages: a terminal would obey what is in them.
    const isShown = typeof piece === 'string' && this.#upload === null && isTerminal(this.#stream);
    if (!this.#failure && !this.#stream.write(isShown ? cleanLines(piece) : piece))
      await movesOn(this.#stream);
    if (this.#failure) throw cannotWrite(this.#name, this.#failure);
  }

  async finish(): Promise<void> {
    if (this.#upload === null) return;
    this.#stream.end();
    try {
      await this.#upload.done();
    } catch (error) {
      throw cannotWrite(this.#name, error);
    }
  }

  async abort(): Promise<void> {
    await this.#upload?.abort();
  }
}

/** Room again, or no more of it: what waits must check. */
function movesOn(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      for (const event of EVENTS) stream.off(event, settle);
      resolve();
    };
    for (const event of EVENTS) stream.on(event, settle);
  });
}

const EVENTS = ['drain', 'error', 'close'] as const;

/** Written beside its place and moved there when whole. Pipes and devices are written directly. */
function openFile(path: string): Upload {
  const kept = statSync(path, { throwIfNoEntry: false });
  if (kept && !kept.isFile()) {
    const stream = createWriteStream(path);
    return { stream, done: () => finished(stream), abort: async () => void stream.destroy() };
  }
  // A link stays a link: what it leads to is replaced.
  const target = kept ? realpathSync(path) : path;
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(4).toString('hex')}.tmp`);
  const stream = createWriteStream(temporary, { flush: true, flags: 'wx' });
  const signals = watchSignals({ secondExits: true });
  void signals.first.then(() => {
    rmSync(temporary, { force: true });
    process.exit(130);
  });
  return {
    stream,
    async done() {
      await finished(stream);
      await rename(temporary, target);
      signals.close();
    },
    async abort() {
      // Destroyed while it is being opened, it would create the file after all.
      if (!stream.closed) await new Promise<void>((resolve) => stream.once('close', resolve).destroy());
      await rm(temporary, { force: true });
      signals.close();
    },
  };
}

function isTerminal(stream: Writable & { isTTY?: boolean }): boolean {
  return stream.isTTY === true;
}
