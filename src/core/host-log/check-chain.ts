import { BoundedMap } from '../lru.ts';
import { canonicalJson } from '../values/canonical-json.ts';
import { addToSums, NO_SUMS } from './checkpoint.ts';
import { FIRST_PREVIOUS, type HostLogRow, hashOf, type LogSums } from './host-log.ts';

/** The last entry of a host that was seen. */
interface ChainHead {
  number: number;
  hash: string;
}

export interface ChainFault {
  host: string | null;
  number: number | null;
  problem: string;
}

/** What a log holds, and whether its chains are whole. */
export interface ChainSummary {
  hosts: number;
  entries: number;
  requests: number;
  refusals: number;
  /** Permits whose worker did not say what it sent. */
  lost: number;
  /** Logs that begin with a checkpoint, and what it says of the entries before it. */
  cut: { hosts: number; entries: number; requests: number; refusals: number };
  /** Requests that followed another one sooner than their permit allowed, at least so many. */
  shortGaps: number;
  faultCount: number;
  /** The first of them. */
  faults: ChainFault[];
}

/** More faults would be read by nobody. */
const FAULTS_KEPT = 100;
/** Between entries times are known to the millisecond. */
const ROUNDING_MS = 1;

interface Chain extends ChainHead {
  /** Of all entries so far, also those that were cut. */
  sums: Omit<LogSums, 'hash'>;
  /** The last request under a permit with a gap, by the address that it came from: addresses are used at the same time. */
  last: BoundedMap<string, { sentAt: number; gapUs: number }>;
}

/** Addresses of a host that are remembered: those that were used last. */
const ADDRESSES_KEPT = 200;

/** Checks chains row by row: entries of different hosts may be mixed, those of one host are in order. */
export class ChainCheck {
  readonly #chains = new Map<string, Chain>();
  /** Heads of a log that was written earlier: this one must go on from them. */
  readonly #earlier: ReadonlyMap<string, ChainHead>;
  readonly #sums: ChainSummary = {
    ...{ hosts: 0, entries: 0, requests: 0, refusals: 0, lost: 0, shortGaps: 0, faultCount: 0 },
    cut: { hosts: 0, entries: 0, requests: 0, refusals: 0 },
    faults: [],
  };

  constructor(earlier: ReadonlyMap<string, ChainHead> = new Map()) {
    this.#earlier = earlier;
  }

  add(row: unknown): void {
    if (isRow(row)) this.#add(row);
    else this.fault(null, null, 'a line is not an entry of a host log');
  }

  #add(row: HostLogRow): void {
    const { number, previous, hash, ...entry } = row;
    const chain = this.#chains.get(entry.host) ?? this.#begin(row);
    if (number !== chain.number + 1)
      this.fault(
        entry.host,
        number,
        `entry ${chain.number + 1} was expected here: entries are missing or doubled`,
      );
    else if (previous !== chain.hash)
      this.fault(entry.host, number, 'does not name the hash of the entry before it');
    if (hashOf(previous, canonicalJson(entry)) !== hash)
      this.fault(entry.host, number, 'its hash does not fit its content: it was changed');
    const known = this.#earlier.get(entry.host);
    if (known?.number === number && known.hash !== hash)
      this.fault(entry.host, number, 'is another one than in the earlier log');
    if (entry.kind === 'checkpoint') this.#compare(row, chain.sums);
    this.#count(row, chain);
    this.#chains.set(entry.host, { ...chain, number, hash, sums: addToSums(chain.sums, row) });
  }

  /** A log that was cut begins with a checkpoint: its sums stand for what is not there any more. */
  #begin({ host, kind, number, previous, before }: HostLogRow): Chain {
    if (kind !== 'checkpoint' || !isSums(before) || number === 1)
      return { number: 0, hash: FIRST_PREVIOUS, sums: NO_SUMS, last: new BoundedMap(ADDRESSES_KEPT) };
    const { hash: last, ...sums } = before;
    const { cut } = this.#sums;
    cut.hosts++;
    cut.entries += sums.entries;
    cut.requests += sums.requests;
    cut.refusals += sums.refusals;
    const known = this.#earlier.get(host);
    if (known && known.number < number - 1)
      this.fault(
        host,
        number,
        `begins after entry ${known.number}, the last of the earlier log: what is between was cut`,
      );
    else if (known?.number === number - 1 && known.hash !== previous)
      this.fault(host, known.number, 'was another one than in the earlier log');
    return { number: number - 1, hash: last, sums, last: new BoundedMap(ADDRESSES_KEPT) };
  }

  /** Of entries that are there, sums can be told. */
  #compare({ host, number, previous, before }: HostLogRow, sums: Omit<LogSums, 'hash'>): void {
    const isTrue =
      isSums(before) &&
      before.entries === number - 1 &&
      canonicalJson(before) === canonicalJson({ ...sums, hash: previous });
    if (!isTrue) this.fault(host, number, 'its sums do not fit the entries before it');
  }

  /** Something else that is wrong with the log. */
  fault(host: string | null, number: number | null, problem: string): void {
    this.#sums.faultCount++;
    if (this.#sums.faults.length < FAULTS_KEPT) this.#sums.faults.push({ host, number, problem });
  }

  get heads(): ReadonlyMap<string, ChainHead> {
    return this.#chains;
  }

  /** After the last row. */
  finish(): ChainSummary {
    for (const [host, { number }] of this.#earlier) {
      const found = this.#chains.get(host)?.number ?? 0;
      if (found < number)
        this.fault(host, found, `ends here, but the earlier log has ${number} entries of this host`);
    }
    return { ...this.#sums, hosts: this.#chains.size };
  }

  #count(
    { kind, requests, refusals, permit, smallestGapUs, firstSentAt, lastSentAt }: HostLogRow,
    chain: Chain,
  ): void {
    this.#sums.entries++;
    this.#sums.requests += requests ?? 0;
    this.#sums.refusals += refusals ?? 0;
    if (kind === 'lost') this.#sums.lost++;
    const gapUs = permit?.gapUs ?? 0;
    if (gapUs === 0) return;
    if (smallestGapUs !== null && smallestGapUs < gapUs) this.#sums.shortGaps++;
    if (firstSentAt === null || lastSentAt === null) return;
    const address = permit?.address ?? '';
    const last = chain.last.get(address);
    const sinceMs = last ? Date.parse(firstSentAt) - last.sentAt : -1;
    if (sinceMs >= 0 && sinceMs + ROUNDING_MS < Math.min(gapUs, last!.gapUs) / 1_000) this.#sums.shortGaps++;
    chain.last.set(address, { sentAt: Math.max(last?.sentAt ?? 0, Date.parse(lastSentAt)), gapUs });
  }
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isSums(before: unknown): before is LogSums {
  if (typeof before !== 'object' || before === null) return false;
  const { entries, firstAt, hash, lost, permits, refusals, requests } = before as Record<string, unknown>;
  const counts = [entries, lost, permits, refusals, requests];
  return (
    counts.every(isCount) && typeof hash === 'string' && (firstAt === null || typeof firstAt === 'string')
  );
}

function isRow(row: unknown): row is HostLogRow {
  if (typeof row !== 'object' || row === null) return false;
  const { host, number, previous, hash, ...rest } = row as Partial<Record<keyof HostLogRow, unknown>>;
  const { requests, refusals, smallestGapUs, firstSentAt, lastSentAt, permit } = rest;
  const { gapUs, address } = (permit ?? {}) as { gapUs?: unknown; address?: unknown };
  const isNoneOr = (fits: (value: unknown) => boolean, ...values: unknown[]) =>
    values.every((value) => value === null || value === undefined || fits(value));
  return (
    [host, previous, hash].every((text) => typeof text === 'string') &&
    Number.isSafeInteger(number) &&
    isNoneOr(isCount, requests, refusals) &&
    isNoneOr(Number.isSafeInteger, smallestGapUs, gapUs) &&
    isNoneOr((text) => typeof text === 'string', firstSentAt, lastSentAt, address)
  );
}
