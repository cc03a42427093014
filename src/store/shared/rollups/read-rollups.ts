import {
  ALL_HOSTS,
  addRollup,
  countName,
  emptyRollup,
  type Rollup,
  WHOLE_JOB_STEP,
} from '../../../core/rollups/rollup.ts';
import type { FailureCell, RollupStore } from '../../../ports/store/rollup-store.ts';
import type { Reader } from '../views/reader.ts';
import { SUM_COLUMNS, type SumColumnsRow, toRollup } from './rollup-rows.ts';

const HOUR_STEP = 3_600;
const MINUTE_STEP = 60;

interface NamedCount {
  host: string;
  at: number;
  name: string;
  amount: number;
}

/** The reading half of both stores. */
export class ReadRollups implements Omit<RollupStore, 'add'> {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  async series(...[jobId, { step, from, to, host }]: Parameters<RollupStore['series']>) {
    const rows = await this.#merged(jobId, { step, from, to, host }, ({ at }) => at);
    return [...rows].map(([at, rollup]) => ({ at, rollup })).sort((a, b) => a.at - b.at);
  }

  async total(jobId: number): Promise<Rollup> {
    const range = { step: WHOLE_JOB_STEP, from: 0, to: 1, host: ALL_HOSTS };
    const rows = await this.#merged(jobId, range, () => 0);
    return rows.get(0) ?? emptyRollup();
  }

  async hosts(jobId: number, { limit, since }: { limit: number; since?: number }) {
    const rows = await this.#merged(jobId, { since: since ?? null }, ({ host }) => host);
    return [...rows]
      .map(([host, rollup]) => ({ host, rollup }))
      .sort((a, b) => b.rollup.requests - a.rollup.requests || (a.host < b.host ? -1 : 1))
      .slice(0, limit);
  }

  async failures(jobId: number, { limit }: { limit: number }): Promise<FailureCell[]> {
    const prefix = countName('failure', '');
    const rows = await this.#reader.all<{ host: string; name: string; count: number }>(
      SUM_FAILURES,
      jobId,
      prefix,
      `${prefix}~`,
      limit,
    );
    return rows.map(({ host, name, count }) => ({ host, code: name.slice(prefix.length), count }));
  }

  /** A range of one host, or all that is kept of all hosts: few enough to add up here, where rows of shards are, too. */
  async #merged<K>(
    jobId: number,
    range: { step: number; from: number; to: number; host: string } | { since: number | null },
    keyOf: (row: { host: string; at: number }) => K,
  ): Promise<Map<K, Rollup>> {
    const [suffix, values] =
      'step' in range
        ? [RANGE, [jobId, range.step, range.host, range.from, range.to]]
        : [HOSTS, [jobId, range.since === null ? HOUR_STEP : MINUTE_STEP, ALL_HOSTS, range.since ?? 0]];
    const merged = new Map<K, Rollup>();
    const rollupOf = (row: { host: string; at: number }): Rollup => {
      const key = keyOf(row);
      const known = merged.get(key) ?? emptyRollup();
      merged.set(key, known);
      return known;
    };
    for (const row of await this.#reader.all<SumColumnsRow>(`${SELECT_SUMS} ${suffix}`, ...values))
      addRollup(rollupOf(row), toRollup(row));
    for (const row of await this.#reader.all<NamedCount>(`${SELECT_COUNTS} ${suffix}`, ...values)) {
      const { counts } = rollupOf(row);
      counts.set(row.name, (counts.get(row.name) ?? 0) + row.amount);
    }
    return merged;
  }
}

const SELECT_SUMS = `SELECT host, at, latency_max_ms, ${SUM_COLUMNS.join(', ')} FROM rollups`;

const SELECT_COUNTS = 'SELECT host, at, name, amount FROM rollup_counts';

const RANGE = 'WHERE job_id = $1 AND step = $2 AND host = $3 AND at >= $4 AND at < $5';

const HOSTS = 'WHERE job_id = $1 AND step = $2 AND host <> $3 AND at >= $4';

const SUM_FAILURES = `
  SELECT host, name, CAST(sum(amount) AS bigint) AS count FROM rollup_counts
  WHERE job_id = $1 AND step = ${HOUR_STEP} AND host <> '' AND name >= $2 AND name < $3
  GROUP BY host, name ORDER BY count DESC, host COLLATE "C", name COLLATE "C" LIMIT $4`;
