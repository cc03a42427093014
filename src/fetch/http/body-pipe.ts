import { pipeline, Readable } from 'node:stream';
import type { FailureCode } from '../../core/failures.ts';
import type { BodySink } from '../../ports/fetcher.ts';
import {
  type Decoded,
  type Decoder,
  decodedBytesMax,
  openDecoders,
  refusalOf,
  TOO_LARGE,
} from '../body/content-coding.ts';

/** Carries a body to a sink, piece by piece, no faster than the sink takes it. */
export interface BodyPipe {
  add(chunk: Buffer): void;
  /** The body is complete on the wire; `onDone` follows when the sink has all of it. */
  end(): void;
  /** Nothing reaches the sink any more, and no event comes. */
  stop(): void;
}

interface PipeEvents {
  /** The sink is behind: no more chunks, please. They are taken all the same. */
  onFull(): void;
  onRoom(): void;
  onDone(): void;
  onFailure(code: FailureCode, detail: string): void;
}

export function openBodyPipe(
  sink: BodySink,
  codings: string[] | null,
  bodyBytesMax: number,
  events: PipeEvents,
): BodyPipe {
  return codings === null ? new PlainPipe(sink, events) : new CodedPipe(sink, codings, bodyBytesMax, events);
}

const NOT_STORED = 'the body could not be stored';

/** Without streams: a sink that returns at once costs no more than a call. */
class PlainPipe implements BodyPipe {
  readonly #sink: BodySink;
  readonly #events: PipeEvents;
  /** What came while the sink was busy: little, as the socket is paused then. */
  readonly #waiting: Buffer[] = [];
  #busy = false;
  #ended = false;
  #stopped = false;

  constructor(sink: BodySink, events: PipeEvents) {
    this.#sink = sink;
    this.#events = events;
  }

  add(chunk: Buffer): void {
    this.#waiting.push(chunk);
    if (this.#busy) return;
    this.#drain();
    if (this.#busy) this.#events.onFull();
  }

  end(): void {
    this.#ended = true;
    if (!this.#busy && !this.#stopped) this.#events.onDone();
  }

  stop(): void {
    this.#stopped = true;
  }

  #drain(): void {
    while (!this.#busy && !this.#stopped) {
      const chunk = this.#waiting.shift();
      if (chunk === undefined) return;
      try {
        const written = this.#sink.write(chunk);
        if (written === undefined) continue;
        this.#busy = true;
        written.then(
          () => this.#goOn(),
          () => this.#fail(),
        );
      } catch {
        this.#fail();
      }
    }
  }

  #goOn(): void {
    this.#busy = false;
    this.#drain();
    if (this.#busy || this.#stopped) return;
    if (this.#ended) this.#events.onDone();
    else this.#events.onRoom();
  }

  #fail(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#events.onFailure('internal', NOT_STORED);
  }
}

/** Decodes on the way, with Node's streams: they hold a bomb back until the sink has taken what came before. */
class CodedPipe implements BodyPipe {
  readonly #sink: BodySink;
  readonly #codings: string[];
  readonly #bodyBytesMax: number;
  readonly #events: PipeEvents;
  #input: Readable | null = null;
  #full = false;
  #stopped = false;
  #wireBytes = 0;

  constructor(sink: BodySink, codings: string[], bodyBytesMax: number, events: PipeEvents) {
    this.#sink = sink;
    this.#codings = codings;
    this.#bodyBytesMax = bodyBytesMax;
    this.#events = events;
  }

  add(chunk: Buffer): void {
    if (this.#stopped) return;
    this.#wireBytes += chunk.length;
    this.#input ??= this.#open(chunk);
    if (this.#input.push(chunk) || this.#full) return;
    this.#full = true;
    this.#events.onFull();
  }

  end(): void {
    if (this.#stopped) return;
    // An empty body stays empty whatever coding it claims, as for bodies in memory.
    if (this.#input === null) this.#events.onDone();
    else this.#input.push(null);
  }

  stop(): void {
    this.#stopped = true;
    this.#input?.destroy();
  }

  #open(first: Buffer): Readable {
    const input = new Readable({ read: () => this.#makeRoom() });
    const decoders = openDecoders(this.#codings, first);
    if ('ok' in decoders) {
      // Not within the call: the owner is still at the head of the response.
      queueMicrotask(() => this.#fail(decoders));
      return input;
    }
    // The error goes on to the last stream, where it is seen.
    const decoded =
      decoders.length === 0 ? (input as Decoder) : (pipeline([input, ...decoders], () => {}) as Decoder);
    this.#pour(decoded).then(
      () => {
        // A decoder of zstd stops after its first frame, and takes what follows without a word.
        const left = this.#wireBytes - (decoders[0]?.bytesWritten ?? this.#wireBytes);
        if (left > 0 && this.#codings.includes('zstd')) this.#fail(SEVERAL_FRAMES);
        else if (!this.#stopped) this.#events.onDone();
      },
      (error) => this.#fail(error instanceof Refusal ? error.decoded : refusalOf(error)),
    );
    return input;
  }

  async #pour(pieces: AsyncIterable<Buffer>): Promise<void> {
    let bytes = 0;
    for await (const piece of pieces) {
      if (this.#stopped) return;
      bytes += piece.length;
      // The ratio is that of what has come so far: to wait for the whole body would be to store the bomb.
      if (bytes > decodedBytesMax(this.#wireBytes, this.#bodyBytesMax)) throw new Refusal(TOO_LARGE);
      try {
        await this.#sink.write(piece);
      } catch {
        throw new Refusal({ ok: false, code: 'internal', detail: NOT_STORED });
      }
    }
  }

  #makeRoom(): void {
    if (!this.#full || this.#stopped) return;
    this.#full = false;
    this.#events.onRoom();
  }

  #fail(decoded: Decoded): void {
    if (this.#stopped || decoded.ok) return;
    this.#stopped = true;
    this.#events.onFailure(decoded.code, decoded.detail);
  }
}

const SEVERAL_FRAMES: Decoded = {
  ok: false,
  code: 'bad-encoding',
  detail: 'the body has more than one zstd frame, which is supported only for small bodies',
};

class Refusal extends Error {
  readonly decoded: Decoded;

  constructor(decoded: Decoded) {
    super('the body is refused');
    this.decoded = decoded;
  }
}
