const FIRST_PLACES = 1_024;
const EMPTY = -1;

/** A map from slots of the dedupe index to tasks: 32 bytes an entry at most, and nothing for the garbage collector. */
export class SlotTable {
  #slots = new Float64Array(FIRST_PLACES).fill(EMPTY);
  #taskIds = new Float64Array(FIRST_PLACES);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(slot: number): number | undefined {
    const place = this.#placeOf(slot);
    return this.#slots[place] === EMPTY ? undefined : this.#taskIds[place];
  }

  set(slot: number, taskId: number): void {
    const place = this.#placeOf(slot);
    this.#taskIds[place] = taskId;
    if (this.#slots[place] === slot) return;
    this.#slots[place] = slot;
    this.#size++;
    if (this.#size * 2 > this.#slots.length) this.#grow();
  }

  /** It keeps its room. */
  clear(): void {
    this.#slots.fill(EMPTY);
    this.#size = 0;
  }

  sortedSlots(): Float64Array {
    return this.#slots.filter((slot) => slot !== EMPTY).sort();
  }

  /** Where the slot is, or would be. Slots are hashes: their low bits are spread well enough. */
  #placeOf(slot: number): number {
    const mask = this.#slots.length - 1;
    let place = (slot >>> 0) & mask;
    while (this.#slots[place] !== slot && this.#slots[place] !== EMPTY) place = (place + 1) & mask;
    return place;
  }

  #grow(): void {
    const [slots, taskIds] = [this.#slots, this.#taskIds];
    this.#slots = new Float64Array(slots.length * 2).fill(EMPTY);
    this.#taskIds = new Float64Array(slots.length * 2);
    for (let from = 0; from < slots.length; from++) {
      const slot = slots[from]!;
      if (slot === EMPTY) continue;
      const place = this.#placeOf(slot);
      this.#slots[place] = slot;
      this.#taskIds[place] = taskIds[from]!;
    }
  }
}
