import type { HostFacts, HostStore, RobotsEntry } from '../../ports/store.ts';
import type { Database } from './database.ts';
import { WAITING } from './rows.ts';

const STEP = 500;

export class PostgresHostStore implements HostStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async *list(jobId: number): AsyncIterable<HostFacts> {
    let after = '';
    while (true) {
      const rows = await this.#db.read<HostColumns>(SELECT_HOSTS, jobId, after, STEP);
      const hosts = rows.map(({ host }) => host);
      const robots = await this.#db.read<RobotsEntry>(SELECT_ROBOTS_OF_HOSTS, hosts);
      for (const { pace, lastError, ...row } of rows) {
        yield {
          ...row,
          pace: pace === null ? null : JSON.parse(pace),
          lastError: lastError === null ? null : JSON.parse(lastError),
          robots: robots.filter(({ host }) => host === row.host),
        };
      }
      const last = rows.at(-1);
      if (!last) return;
      after = last.host;
    }
  }

  async robots(origin: string): Promise<RobotsEntry | null> {
    const [row] = await this.#db.read<RobotsEntry>(SELECT_ROBOTS_OF_ORIGIN, origin);
    return row ?? null;
  }

  async clampNextAt(latest: number): Promise<void> {
    await this.#db.write(
      async (tx) => {
        await tx.run('UPDATE hosts SET next_at = $1 WHERE next_at > $1', latest);
        await tx.run('UPDATE queues SET next_at = $1 WHERE next_at > $1', latest);
        await tx.run(`UPDATE tasks SET due_at = $1 WHERE state = ${WAITING} AND due_at > $1`, latest);
      },
      { slow: true },
    );
  }
}

type HostColumns = Omit<HostFacts, 'pace' | 'lastError' | 'robots'> & {
  pace: string | null;
  lastError: string | null;
};

const SELECT_HOSTS = `
  SELECT hosts.host, queues.ready, hosts.requests, greatest(hosts.next_at, queues.next_at) AS "nextAt",
    hosts.failures_in_row AS "failuresInRow", hosts.rests, hosts.pace, hosts.smallest_gap_ms AS "smallestGapMs",
    hosts.last_error AS "lastError"
  FROM hosts JOIN queues ON queues.host_id = hosts.id AND queues.job_id = $1
  WHERE hosts.host > $2 ORDER BY hosts.host LIMIT $3`;

const SELECT_ROBOTS = `
  SELECT origin, host, text, fetched_at AS "fetchedAt", failures, detail, crawl_delay_ms AS "crawlDelayMs" FROM robots`;

const SELECT_ROBOTS_OF_HOSTS = `${SELECT_ROBOTS} WHERE host = ANY($1::text[]) ORDER BY origin`;

const SELECT_ROBOTS_OF_ORIGIN = `${SELECT_ROBOTS} WHERE origin = $1`;
