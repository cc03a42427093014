/**
 * Of rows that requests have sent and that are not written down yet, over all lists that come in at once. With ordinary
 * URLs some twenty lists come at full speed; more of them wait for one another.
 */
const CHARS_MAX = 64 * 1024 * 1024;
/** Of those, one key may have half: a client that sends slowly holds what it has sent. */
const KEY_CHARS_MAX = CHARS_MAX / 2;

interface Waiting {
  key: string;
  chars: number;
  admit(): void;
}

/** Room for rows on their way from requests to the store. Whoever finds none waits for it, and is not refused. */
export class RowRoom {
  readonly #limits: { charsMax: number; keyCharsMax: number };
  readonly #byKey = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  #chars = 0;

  constructor(limits = { charsMax: CHARS_MAX, keyCharsMax: KEY_CHARS_MAX }) {
    this.#limits = limits;
  }

  get chars(): number {
    return this.#chars;
  }

  /** The part of one list, whose rows belong to a key. */
  of(key: string | null) {
    const name = key ?? '';
    return {
      take: (chars: number) => this.#take(name, chars),
      wait: (chars: number) => this.#wait(name, chars),
      give: (chars: number) => this.#give(name, chars),
    };
  }

  /** False where there is no room, or others have waited for longer. */
  #take(key: string, chars: number): boolean {
    if (this.#waiting.some((other) => other.key === key) || !this.#hasRoom(key, chars)) return false;
    this.#add(key, chars);
    return true;
  }

  #wait(key: string, chars: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ key, chars, admit: resolve });
      this.#admit();
    });
  }

  #give(key: string, chars: number): void {
    this.#add(key, -chars);
    this.#admit();
  }

  /** A row that is larger than all room is let in alone. */
  #hasRoom(key: string, chars: number): boolean {
    const own = this.#byKey.get(key) ?? 0;
    const { charsMax, keyCharsMax } = this.#limits;
    return (
      this.#chars === 0 || (this.#chars + chars <= charsMax && (own === 0 || own + chars <= keyCharsMax))
    );
  }

  #add(key: string, chars: number): void {
    this.#chars += chars;
    const own = (this.#byKey.get(key) ?? 0) + chars;
    if (own > 0) this.#byKey.set(key, own);
    else this.#byKey.delete(key);
  }

  /** In the order in which they came; a key that has its part lets others pass. */
  #admit(): void {
    for (let at = 0; at < this.#waiting.length; ) {
      const { key, chars, admit } = this.#waiting[at]!;
      if (!this.#hasRoom(key, chars)) {
        at++;
        continue;
      }
      this.#waiting.splice(at, 1);
      this.#add(key, chars);
      admit();
    }
  }
}
