import { Worker } from 'node:worker_threads';
import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { memoryShare } from '../../machine/machine.ts';
import type { RemoteFiles } from '../../ports/remote-files.ts';
import { type CellMapper, type ColumnSpec, checkColumns, mapCells } from '../rows/map-row.ts';
import { BrokenFileError, type FileReader, type RawRow } from '../rows/raw-row.ts';
import type { FromParquet, ParquetAnswer, ToParquet } from './parquet-messages.ts';
import type { ParquetPiece } from './parquet-reader.ts';

/** Heap of the thread that unpacks Parquet: damaged run lengths would otherwise fill the machine. */
const PARQUET_HEAP_MB = { min: 128, max: 1024 };
const MB = 1024 * 1024;
/** A page takes milliseconds; damaged counts can make a loop endless. */
const PARQUET_STALL_MS = 60_000;

interface ParquetLimits {
  heapMb: number;
  stallMs: number;
}

function heapMb(): number {
  const { min, max } = PARQUET_HEAP_MB;
  return memoryShare(0.5, { min: min * MB, max: max * MB }) / MB;
}

/** Rows of Parquet files. A position is the number of rows before it in the file. */
export function openParquetReader(
  files: RemoteFiles,
  spec: ColumnSpec,
  limits: ParquetLimits = { heapMb: heapMb(), stallMs: PARQUET_STALL_MS },
): FileReader {
  const thread = new ParquetThread(limits);
  const open = async (url: string): Promise<string[]> => {
    const size = await files.size(url);
    const answer = await thread.ask({ kind: 'open', size }, (offset, length) =>
      files.read(url, offset, length),
    );
    return answer.kind === 'opened' ? answer.columns : [];
  };
  return {
    async *rows(url, at) {
      const mapper = mapCells(await open(url), spec);
      const from = at === null ? 0 : Number(at);
      const first: ToParquet = { kind: 'rows', columns: mapper.names, from };
      let next = thread.ask(first);
      for (;;) {
        const answer = await next;
        if (answer.kind !== 'piece') return;
        // The thread unpacks the next rows while these are taken; who leaves early does not wait for it.
        next = thread.ask({ kind: 'next' });
        next.catch(() => {});
        yield* rowsOf(answer.piece, mapper);
      }
    },
    async check(url) {
      checkColumns(await open(url), spec);
    },
    close: () => thread.close(),
  };
}

function* rowsOf(piece: ParquetPiece, mapper: CellMapper): Iterable<RawRow> {
  const tooLarge = new Set(piece.tooLarge);
  for (let index = 0; index < piece.count; index++) {
    const after = piece.start + index + 1;
    const row = tooLarge.has(index)
      ? {
          reason: `its columns are larger than ${LIMITS.sourceRowBytesMax} bytes; select fewer with \`meta\``,
        }
      : mapper.map((column) => piece.columns[column]![index]);
    yield { place: `row ${after}`, at: after, row };
  }
}

function unreadable(reason: string): BrokenFileError {
  return new BrokenFileError(`cannot read it as Parquet: ${reason}`);
}

type ReadBytes = (offset: number, length: number) => Promise<Buffer>;

/** The thread, started when it is first needed and again after a file has made it crash. */
class ParquetThread {
  readonly #limits: ParquetLimits;
  #worker: Worker | null = null;
  #read: ReadBytes | null = null;
  #settle: { resolve(answer: ParquetAnswer): void; reject(error: unknown): void } | null = null;
  #watch: NodeJS.Timeout | undefined;
  #reading = 0;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(limits: ParquetLimits) {
    this.#limits = limits;
  }

  /** One question at a time. `read` is where bytes come from, until another is given. */
  ask(message: ToParquet, read?: ReadBytes): Promise<ParquetAnswer> {
    if (read) this.#read = read;
    this.#worker ??= this.#start();
    const worker = this.#worker;
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      worker.postMessage(message);
      this.#guard();
    });
  }

  async close(): Promise<void> {
    this.#fail(new Error('closed'));
    await this.#ended;
  }

  #start(): Worker {
    // The same tree runs from sources and from the build: the thread has this file's ending.
    const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./parquet-thread.${ending}`, import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: this.#limits.heapMb, maxYoungGenerationSizeMb: 32 },
    });
    const lost = (reason: string) => {
      if (worker === this.#worker) this.#fail(unreadable(reason));
    };
    worker.on('message', (message: FromParquet) => {
      if (worker === this.#worker) this.#receive(worker, message);
    });
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const isFull = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      lost(isFull ? messageOf(error) : 'its data is damaged');
    });
    worker.on('exit', () => lost('the thread ended'));
    return worker;
  }

  #receive(worker: Worker, message: FromParquet): void {
    clearTimeout(this.#watch);
    if (message.kind !== 'read') {
      const settle = this.#settle;
      this.#settle = null;
      if (message.kind === 'broken') settle?.reject(unreadable(message.reason));
      else settle?.resolve(message);
      return;
    }
    const { id, offset, length } = message;
    this.#reading++;
    this.#read!(offset, length).then(
      (bytes) => {
        this.#reading--;
        if (worker !== this.#worker) return;
        // Moved over, not copied, unless they are part of something larger.
        const own = bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
        worker.postMessage({ kind: 'bytes', id, bytes: own } satisfies ToParquet, [
          own.buffer as ArrayBuffer,
        ]);
        this.#guard();
      },
      (error: unknown) => {
        this.#reading--;
        if (worker === this.#worker) this.#fail(error);
      },
    );
  }

  /** While it waits for nothing, it must answer in time. */
  #guard(): void {
    clearTimeout(this.#watch);
    if (this.#reading > 0) return;
    const { stallMs } = this.#limits;
    this.#watch = setTimeout(() => {
      this.#fail(unreadable(`decompression takes longer than ${stallMs / 1_000} seconds`));
    }, stallMs);
  }

  /** Ends the thread: whatever it holds is of no more use. */
  #fail(error: unknown): void {
    clearTimeout(this.#watch);
    const worker = this.#worker;
    this.#worker = null;
    this.#reading = 0;
    if (worker) this.#ended = worker.terminate();
    this.#settle?.reject(error);
    this.#settle = null;
  }
}
