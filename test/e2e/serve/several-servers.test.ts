import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { startSeine, temporaryFolder } from '../../support/seine-process.ts';
import { endServer, type Served, serve } from '../../support/serve-process.ts';
import { type PostgresServer, startPostgres } from '../../support/servers/services.ts';
import { type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';

/** Long enough for a machine that is busy with other things. */
const POLL = { timeout: 120_000, interval: 250 };
const PAGES = 30;
const NAMES = ['one', 'two', 'three', 'four', 'five', 'six'];
const folder = temporaryFolder();
let site: LinkedSite;
let postgres: PostgresServer;

beforeAll(async () => {
  [site, postgres] = await Promise.all([startLinkedSite({ pages: PAGES }), startPostgres()]);
});

afterAll(async () => {
  await site.close();
  await postgres.stop();
  folder.remove();
});

/** Each job has a host of its own. */
function writeJobs(dir: string): void {
  mkdirSync(dir, { recursive: true });
  for (const [index, name] of NAMES.entries()) {
    const source = `http://127.0.3.${index + 1}:${site.port}/`;
    const politeness = { rate: 50, adaptive: false };
    const job = { sources: [source], follow: true, allowPrivate: true, politeness, batchSize: 5 };
    writeFileSync(join(dir, `${name}.json`), JSON.stringify(job));
  }
}

/** Servers that are alive and have jobs, the one with most of them first. */
const AT_WORK = `
  SELECT coordinators.place, count(*) AS jobs FROM seine.coordinators JOIN seine.coordinator_jobs
    ON coordinator_jobs.coordinator_id = coordinators.id
  WHERE alive_until > now() GROUP BY coordinators.place ORDER BY count(*) DESC`;

const JOBS_AT_WORK = `
  SELECT count(DISTINCT job_id) AS jobs, count(*) AS runs FROM seine.coordinators JOIN seine.coordinator_jobs
    ON coordinator_jobs.coordinator_id = coordinators.id
  WHERE alive_until > now()`;

const FETCHED_TWICE = `
  SELECT task_id FROM seine.attempts WHERE outcome = 'fetched' GROUP BY task_id HAVING count(*) > 1`;

test('servers over one database share the jobs, and one takes over what a killed one leaves', async () => {
  const store = await postgres.createDatabase();
  const jobs = join(folder.path, 'jobs');
  writeJobs(jobs);
  const shared = ['--store', store, '--blobs', join(folder.path, 'blobs')];
  const start = async (name: string): Promise<Served> => {
    const served = await serve(join(folder.path, name), '--jobs', jobs, ...shared);
    onTestFinished(async () => void (await served.started.killTree()));
    return served;
  };
  const runs = async () => {
    const { stdout } = await seine(['jobs', '--json', '--dir', join(folder.path, 'looks'), '--store', store]);
    return JSON.parse(stdout) as { id: string; state: string; done: number }[];
  };
  // No job can be over before it is taken over.
  site.hold();
  // Both have the same job files, as two replicas do: there is one run of each.
  const servers = new Map(
    await Promise.all(['a', 'b'].map(async (name) => [name, await start(name)] as const)),
  );
  const client = new pg.Client({ connectionString: store });
  await client.connect();
  onTestFinished(() => client.end());
  const atWork = async () => (await client.query<{ place: string; jobs: string }>(AT_WORK)).rows;
  const all = async () => {
    const { jobs, runs } = (await client.query<{ jobs: string; runs: string }>(JOBS_AT_WORK)).rows[0]!;
    return { jobs: Number(jobs), runs: Number(runs) };
  };
  await expect.poll(async () => (await all()).jobs, POLL).toBe(NAMES.length);
  await site.requests(NAMES.length * 3);
  // A job runs at one server.
  expect(await all()).toEqual({ jobs: NAMES.length, runs: NAMES.length });

  const { place } = (await atWork())[0]!;
  const placeOf = (name: string) => readFileSync(join(folder.path, name, 'coordinator-id'), 'utf8').trim();
  const [killed, other] = placeOf('a') === place ? ['a', 'b'] : ['b', 'a'];
  await servers.get(killed!)!.started.killTree();
  // What twenty seconds without a heartbeat do.
  await client.query('UPDATE seine.coordinators SET alive_until = now() WHERE place = $1', [place]);
  site.release();
  await expect.poll(async () => (await runs()).every(({ state }) => state === 'done'), POLL).toBe(true);
  expect((await runs()).map(({ id, done }) => ({ id, done }))).toEqual(
    expect.arrayContaining(NAMES.map((name) => ({ id: `${name}-1`, done: PAGES }))),
  );
  expect(await runs()).toHaveLength(NAMES.length);
  expect((await client.query(FETCHED_TWICE)).rows).toEqual([]);
  expect((await endServer(servers.get(other!)!)).stderr).toBe('');
});

test('a second server in the folder of another one is refused, also over a database', async () => {
  const store = await postgres.createDatabase();
  const dir = join(folder.path, 'same');
  const first = await serve(dir, '--store', store);
  onTestFinished(async () => void (await first.started.killTree()));
  const about = readFileSync(join(dir, 'server.json'), 'utf8');
  const second = startSeine(['serve', '--dir', dir, '--store', store, '--listen', '127.0.0.1:0']);
  onTestFinished(async () => void (await second.killTree()));
  expect(await second.finished).toMatchObject({
    code: 5,
    stderr: expect.stringContaining(`a server is running in ${dir}`),
  });
  expect(readFileSync(join(dir, 'server.json'), 'utf8')).toBe(about);
});
