import type { Database } from '../connection/database.ts';
import { findIndexed, findRemembered, splitByNeighbours, type Wanted } from './known-tasks.ts';
import { type FilterLevel, SeenFilter } from './seen-filter.ts';
import { keyOf } from './seen-key.ts';
import { SlotTable } from './slot-table.ts';

/**
 * URLs that are gathered before they go into the index, in the order of the index: with millions there, each new one
 * alone would dirty a page of its own. Opening reads back at most one and a half times as many: 0.4 s.
 */
const GATHERED = 131_072;
/**
 * With more URLs in the index, fewer of a load are neighbours there: a load is never less than this share of it, as long as
 * that is at most so many times the usual one. With 20 million URLs that have no order a load then has nine of them for a
 * page of the index instead of three. Opening reads back up to 590,000 tasks: 0.8 s.
 */
const GATHERED_SHARE = 1 / 32;
const GATHERED_TIMES_MAX = 3;
/** A load that is done when the next one is half gathered, in steps that follow the pace of the new URLs. */
const WRITTEN_PER_NEW = 2;
const ROWS_AT_ONCE = 16;
const FINISHED_AT_ONCE = 16_384;
/** In arrays, and without a join for the seed, rows are read back in two thirds of the time: 1.3 µs each. */
const READ_AT_ONCE = 4_096;

/** Where neither is sure, the slots from the key on are to be looked at. */
const UNSURE = 0;
const NEW = 1;
const KNOWN = 2;

/** What is being written into the index. Its table answers until the last of it is there. */
interface Load {
  table: SlotTable;
  slots: Float64Array;
  written: number;
  perNew: number;
  lastId: number;
  /** Levels of the filter that have some of it, to be written with the last of it. */
  levels: Set<FilterLevel>;
}

/**
 * The exact dedupe index: which URLs are tasks already. Each URL has a slot, the first free one from its key on.
 *
 * The table of tasks is the truth. Tasks up to a mark are in the table `seen`; later ones are only remembered here, and
 * are read again from the tasks when that memory is lost. So a death at any moment forgets nothing: the mark moves in
 * the transaction that writes the last slot below it, and a slot that is written twice is noticed.
 */
export class SeenIndex {
  readonly #db: Database;
  readonly #gatheredMax: number;
  #gathered = new SlotTable();
  #load: Load | null = null;
  /** An empty table with room: to grow one anew for each load left 30 MB of garbage. */
  #spare: SlotTable | null = null;
  #filter: SeenFilter | null = null;
  #indexedTo = -1;
  #lastId = -1;
  /** Where the last search in vain ended. */
  #freeSlot = 0;

  constructor(db: Database, gathered = GATHERED) {
    this.#db = db;
    this.#gatheredMax = gathered;
  }

  /** The newest task, as of the last `begin`. */
  get lastId(): number {
    return this.#lastId;
  }

  forget(): void {
    this.#gathered = new SlotTable();
    this.#load = null;
    this.#filter = null;
    this.#indexedTo = -1;
    this.#lastId = -1;
  }

  /** For the start of a transaction that adds tasks. */
  begin(): void {
    this.#catchUp();
    this.#filter ??= this.#readFilter();
  }

  /** Id of the task of that URL, or null. Only for a URL that is not found must it be certain that none was added since. */
  find(jobId: number, url: string, seed: number): number | null {
    const key = keyOf(url, seed);
    const found = this.#lookUp(jobId, url, key);
    return found === null && this.#catchUp() ? this.#lookUp(jobId, url, key) : found;
  }

  /** What the index says of each of these URLs, many at a time. After `begin`. */
  judge(jobId: number, urls: readonly { url: string }[], keys: readonly number[]): Uint8Array {
    const verdicts = new Uint8Array(urls.length).fill(UNSURE);
    const remembered: Wanted[] = [];
    const indexed: Wanted[] = [];
    for (const [at, { url }] of urls.entries()) {
      const key = keys[at]!;
      const id = this.#remembered(key);
      if (id !== undefined) remembered.push({ at, number: id, url });
      else if (this.#filter?.mayHave(key) ?? true) indexed.push({ at, number: key, url });
      else verdicts[at] = NEW;
    }
    for (const at of findRemembered(this.#db, jobId, remembered)) verdicts[at] = KNOWN;
    const { among, apart } = splitByNeighbours(this.#db, indexed);
    for (const { at } of apart) verdicts[at] = NEW;
    for (const at of findIndexed(this.#db, jobId, among)) verdicts[at] = KNOWN;
    return verdicts;
  }

  /** A slot for that URL, or null when it is known. What was judged new may have been added since. */
  slotFor(jobId: number, url: string, key: number, verdict: number | undefined): number | null {
    if (verdict === KNOWN) return null;
    if (verdict === NEW && this.#remembered(key) === undefined) return key;
    return this.#lookUp(jobId, url, key) === null ? this.#freeSlot : null;
  }

  add(slot: number, taskId: number): void {
    this.#gathered.set(slot, taskId);
    this.#lastId = taskId;
  }

  /** Writes a part of what was gathered earlier, in proportion to what was added now. */
  writeBehind(added: number): void {
    const load = this.#load ?? this.#nextLoad();
    if (load) this.#write(load, Math.ceil(added * load.perNew));
  }

  /**
   * Before the connection is closed. The next one would begin the load again, so that runs with few new URLs would never
   * see its end, and each had more to read back.
   */
  finishLoad(): void {
    while (this.#load)
      this.#db.transaction(() => {
        this.begin();
        if (this.#load) this.#write(this.#load, FINISHED_AT_ONCE);
      });
  }

  #write(load: Load, count: number): void {
    const end = Math.min(load.slots.length, load.written + count);
    while (load.written < end) {
      const slots = load.slots.subarray(load.written, Math.min(end, load.written + ROWS_AT_ONCE));
      this.#writeSlots(slots, load.table);
      this.#extendFilter(slots, load.levels);
      load.written += slots.length;
    }
    if (end < load.slots.length) return;
    for (const level of load.levels) this.#db.run(KEEP_LEVEL, level.capacity, level.count, bytesOf(level));
    this.#indexedTo = load.lastId;
    this.#db.run('UPDATE seen_state SET indexed_to = ?', load.lastId);
    load.table.clear();
    this.#spare = load.table;
    this.#load = null;
  }

  /** Slots are taken without a gap from a URL's key on, so the first that is free ends the search. */
  #lookUp(jobId: number, url: string, key: number): number | null {
    for (let slot = key; ; slot++) {
      const remembered = this.#remembered(slot);
      if (remembered !== undefined) {
        const task = this.#db.get<Candidate>(FIND_TASK, remembered);
        if (task?.url === url && task.job_id === jobId) return remembered;
      }
      const indexed = this.#db.get<Candidate>(FIND_INDEXED, slot);
      if (indexed?.url === url && indexed.job_id === jobId) return indexed.id;
      if (remembered !== undefined || indexed) continue;
      this.#freeSlot = slot;
      return null;
    }
  }

  #remembered(slot: number): number | undefined {
    return this.#gathered.get(slot) ?? this.#load?.table.get(slot);
  }

  /** True when there were tasks that this had not heard of: after opening, after a rollback, or of another process. */
  #catchUp(): boolean {
    const { indexedTo, lastId } = this.#db.get<{ indexedTo: number; lastId: number }>(SELECT_STATE)!;
    if (indexedTo === this.#indexedTo && lastId === this.#lastId) return false;
    // Somebody else has written the index, so the filter is old.
    if (indexedTo !== this.#indexedTo || lastId < this.#lastId) this.forget();
    const seeds = new Map<number, number | undefined>();
    for (let after = Math.max(indexedTo, this.#lastId); ; ) {
      const tasks = this.#db.all<Candidate>(SELECT_AFTER, after, READ_AT_ONCE);
      for (const { id, job_id: jobId, url } of tasks) {
        if (!seeds.has(jobId)) seeds.set(jobId, this.#db.get<{ seed: number }>(FIND_SEED, jobId)?.seed);
        const seed = seeds.get(jobId);
        // Of a job that was removed.
        if (seed === undefined) continue;
        let slot = keyOf(url, seed);
        while (this.#remembered(slot) !== undefined) slot++;
        this.#gathered.set(slot, id);
      }
      if (tasks.length < READ_AT_ONCE) break;
      after = tasks.at(-1)!.id;
    }
    this.#indexedTo = indexedTo;
    this.#lastId = lastId;
    return true;
  }

  #nextLoad(): Load | null {
    const table = this.#gathered;
    const wanted = Math.max(
      this.#gatheredMax,
      Math.min(this.#indexedTo * GATHERED_SHARE, this.#gatheredMax * GATHERED_TIMES_MAX),
    );
    if (table.size < wanted) return null;
    const perNew = (WRITTEN_PER_NEW * table.size) / wanted;
    const slots = table.sortedSlots();
    this.#load = { table, slots, written: 0, perNew, lastId: this.#lastId, levels: new Set() };
    this.#gathered = this.#spare ?? new SlotTable();
    this.#spare = null;
    return this.#load;
  }

  #writeSlots(slots: Float64Array, table: SlotTable): void {
    const values: number[] = [];
    for (const slot of slots) values.push(slot, table.get(slot)!);
    if (slots.length === ROWS_AT_ONCE && this.#db.run(INSERT_ROWS, ...values) === ROWS_AT_ONCE) return;
    for (const slot of slots) this.#writeSlot(slot, table.get(slot)!);
  }

  /** The slot may be taken by a URL that had to move up, or by this very one before a death in mid-load. */
  #writeSlot(from: number, taskId: number): void {
    for (let slot = from; ; slot++) {
      if (this.#db.run(INSERT_ROW, slot, taskId) > 0) return;
      const row = this.#db.get<{ task_id: number }>('SELECT task_id FROM seen WHERE fingerprint = ?', slot);
      if (row?.task_id === taskId) return;
    }
  }

  #readFilter(): SeenFilter | null {
    if (this.#db.get<{ filtered: number }>('SELECT filtered FROM seen_state')?.filtered !== 1) return null;
    const rows = this.#db.all<FilterRow>('SELECT capacity, count, bits FROM seen_filter ORDER BY capacity');
    return new SeenFilter(rows.map(({ bits, ...level }) => ({ ...level, bits: wordsOf(bits) })));
  }

  /**
   * Slots instead of keys are enough: who had to move up did so because its key is the slot of another
   * that came no later. Those of an unfinished load only make the filter less sure, in memory alone.
   */
  #extendFilter(slots: Float64Array, into: Set<FilterLevel>): void {
    if (!this.#filter) return;
    const changed = this.#filter.addAll(slots);
    for (const level of changed ?? []) into.add(level);
    if (changed) return;
    this.#filter = null;
    into.clear();
    this.#db.run('UPDATE seen_state SET filtered = 0');
    this.#db.run('DELETE FROM seen_filter');
  }
}

interface Candidate {
  id: number;
  job_id: number;
  url: string;
}

interface FilterRow {
  capacity: number;
  count: number;
  bits: Uint8Array;
}

function wordsOf(bytes: Uint8Array): Uint32Array {
  const { buffer, byteOffset, byteLength } = bytes;
  if (byteOffset % 4 === 0) return new Uint32Array(buffer as ArrayBuffer, byteOffset, byteLength / 4);
  return new Uint32Array(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer);
}

function bytesOf({ bits }: FilterLevel): Uint8Array {
  return new Uint8Array(bits.buffer, bits.byteOffset, bits.byteLength);
}

const SELECT_STATE = `
  SELECT indexed_to AS indexedTo, (SELECT coalesce(max(id), 0) FROM tasks) AS lastId FROM seen_state`;

const SELECT_AFTER = 'SELECT id, job_id, url FROM tasks WHERE id > ? ORDER BY id LIMIT ?';

const FIND_SEED = 'SELECT seed FROM jobs WHERE id = ?';

const FIND_TASK = 'SELECT id, job_id, url FROM tasks WHERE id = ?';

/** The slot of a task that was removed with its job stays taken: others may have moved up because of it. */
const FIND_INDEXED = `
  SELECT tasks.id, tasks.job_id, tasks.url FROM seen LEFT JOIN tasks ON tasks.id = seen.task_id
  WHERE seen.fingerprint = ?`;

const INSERT_ROW = 'INSERT OR IGNORE INTO seen (fingerprint, task_id) VALUES (?, ?)';

const INSERT_ROWS = `${INSERT_ROW}${', (?, ?)'.repeat(ROWS_AT_ONCE - 1)}`;

const KEEP_LEVEL = 'INSERT OR REPLACE INTO seen_filter (capacity, count, bits) VALUES (?, ?, ?)';
