import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { Reject, RejectFile } from '../../ports/source.ts';

/** Warned of one by one; a list of nothing but bad rows would otherwise fill the terminal. */
const WARNED_MAX = 5;
/** For the end of the run, and its JSON. */
const SHOWN_MAX = 20;
/** Gathered before they are written. */
const PIECE_ROWS = 1_000;

/** What sources said that is no URL: the first few for people, the rest in a file, all of them counted by the store. */
export class RejectLog {
  readonly #logger: Logger;
  readonly #file: RejectFile | null;
  /** The first ones. */
  readonly shown: Reject[] = [];
  #noted = 0;
  #piece: Reject[] = [];
  #writing: Promise<void> = Promise.resolve();
  #broken = false;

  constructor(logger: Logger, file: RejectFile | null = null) {
    this.#logger = logger;
    this.#file = file;
  }

  note(reject: Reject): void {
    this.#noted++;
    if (this.shown.length < SHOWN_MAX) this.shown.push(reject);
    if (this.#noted <= WARNED_MAX) this.#logger.warn(`${reject.source}, ${reject.place}: ${reject.reason}`);
    else if (this.#noted === WARNED_MAX + 1)
      this.#logger.warn('more rows were rejected; they are counted but not shown');
    if (!this.#file || this.#broken) return;
    this.#piece.push(reject);
    if (this.#piece.length >= PIECE_ROWS) void this.flush();
  }

  /** Never rejects: a list of bad rows that cannot be written is no reason to stop. */
  flush(): Promise<void> {
    const piece = this.#piece;
    this.#piece = [];
    if (piece.length > 0)
      this.#writing = this.#writing.then(async () => {
        if (this.#broken) return;
        try {
          await this.#file!.append(piece);
        } catch (error) {
          this.#broken = true;
          this.#logger.warn(`cannot write the list of rejected rows: ${messageOf(error)}`);
        }
      });
    return this.#writing;
  }
}
