import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';
import {
  endServer as end,
  type Served,
  serveWith,
  serve as startServer,
} from '../../support/serve-process.ts';
import { type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';
import { startAtTerminal } from '../../support/terminal-process.ts';

const PAGES = 40;
const folder = temporaryFolder();
let site: LinkedSite;
const servers: Served[] = [];

beforeAll(async () => {
  site = await startLinkedSite({ pages: PAGES });
});

afterEach(async () => {
  for (const { started } of servers.splice(0)) await started.killTree();
  site.release();
});

afterAll(async () => {
  await site.close();
  folder.remove();
});

async function serve(...args: Parameters<typeof startServer>): Promise<Served> {
  const server = await startServer(...args);
  servers.push(server);
  return server;
}

function writeJob(path: string, more: object = {}): string {
  const job = { sources: [site.url], follow: true, allowPrivate: true, politeness: { rate: 'max' }, ...more };
  writeFileSync(path, JSON.stringify(job));
  return path;
}

/** Follows a job at a terminal, presses Ctrl-C, and answers what is asked then with one key. */
async function atTerminal(args: string[], key: string): Promise<{ code: number | null; output: string }> {
  const terminal = startAtTerminal(args);
  try {
    await terminal.until(/\x1b\[\?25l/);
    terminal.press('\x03');
    await terminal.until(/stop slow-1\?/);
    terminal.press(key);
    return await terminal.finished;
  } finally {
    terminal.kill();
  }
}

test('waits on an empty folder, says that it is healthy, and runs what is submitted to it', async () => {
  const dir = join(folder.path, 'empty');
  const server = await serve(dir);
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  for (const path of ['/healthz', '/readyz']) expect((await fetch(server.url + path)).status).toBe(200);
  // Without the token of the folder there is nothing else.
  expect((await fetch(`${server.url}/internal/jobs/1`)).status).toBe(404);
  expect(statSync(join(dir, 'server.json')).mode & 0o777).toBe(0o600);

  const file = writeJob(join(folder.path, 'submitted.json'));
  const ran = await seine(['run', file, '--json', '--dir', dir]);
  expect(ran.code).toBe(0);
  expect(lastJson(ran)).toMatchObject({ id: 'submitted-1', state: 'done', done: PAGES });
  const again = await seine(['refresh', 'submitted', '--json', '--dir', dir]);
  expect(lastJson(again)).toMatchObject({ id: 'submitted-1', pass: 2, state: 'done' });

  expect((await end(server)).code).toBe(130);
  expect(existsSync(join(dir, 'server.json'))).toBe(false);
});

test('knows a key from a file when it starts on an empty folder, and then serves nothing but health without it', async () => {
  const key = '0123456789abcdef0123456789abcdef';
  const file = join(folder.path, 'admin-key');
  writeFileSync(file, `${key}\n`);
  const server = await serveWith({ SEINE_ADMIN_KEY_FILE: file }, join(folder.path, 'keyed'));
  servers.push(server);
  const statusOf = async (path: string, given?: string) =>
    (await fetch(server.url + path, given === undefined ? {} : { headers: { 'x-api-key': given } })).status;
  expect([await statusOf('/healthz'), await statusOf('/readyz')]).toEqual([200, 200]);
  expect([await statusOf('/api/v1/jobs'), await statusOf('/api/v1/jobs', `${key}!`)]).toEqual([401, 401]);
  expect([await statusOf('/api/v1/jobs', key), await statusOf('/api/v1/keys', key)]).toEqual([200, 200]);
});

test('resumes all jobs after kill -9 and after SIGTERM, and runs them at the same time', async () => {
  const dir = join(folder.path, 'killed');
  const jobs = join(folder.path, 'jobs');
  mkdirSync(jobs);
  const names = ['one', 'two', 'three'];
  // A host for each: none waits for the turn of another.
  for (const [index, name] of names.entries())
    writeJob(join(jobs, `${name}.json`), {
      sources: [site.url.replace('127.0.0.1', `127.0.0.${index + 2}`)],
    });
  const begun = async () => {
    const { stdout } = await seine(['jobs', '--json', '--dir', dir]);
    return (JSON.parse(stdout) as { done: number }[]).filter(({ done }) => done > 0);
  };
  // No job can end, however long the others take to begin: each gets its first page and waits for the others.
  site.hold();
  const first = await serve(dir, '--jobs', jobs);
  await expect.poll(begun).toHaveLength(names.length);
  expect(first.lines).toHaveLength(1);
  await first.started.killTree();

  const second = await serve(dir);
  expect(await end(second)).toMatchObject({ code: 130 });
  expect(second.lines.map(({ state }) => state)).not.toContain('done');
  site.release();
  const third = await serve(dir);
  await third.until(1 + names.length);
  expect(third.lines.slice(1).map(({ id, state, done }) => ({ id, state, done }))).toEqual(
    expect.arrayContaining(names.map((name) => ({ id: `${name}-1`, state: 'done', done: PAGES }))),
  );
  await end(third);
});

test('a job that breaks ends alone; a changed file is a new run', async () => {
  const dir = join(folder.path, 'broken');
  const good = writeJob(join(folder.path, 'good.json'));
  const bad = writeJob(join(folder.path, 'bad.json'), { sources: [{ file: 'missing.csv' }] });
  const nonsense = join(folder.path, 'nonsense.json');
  writeFileSync(nonsense, '{"sources": 7}');
  const server = await serve(dir, bad, nonsense, good);
  await server.until(3);
  const ended = (id: string) => server.lines.find((line) => line.id === id);
  expect(ended('good-1')).toMatchObject({ state: 'done', done: PAGES });
  expect(ended('bad-1')).toMatchObject({ state: 'stopped', reason: expect.stringContaining('missing.csv') });
  writeJob(good, { limits: { pages: 3 } });
  await server.until(4);
  expect(ended('good-2')).toMatchObject({ state: 'stopped' });
  const { stderr } = await end(server);
  expect(stderr).toContain('nonsense.json');
});

test('a job that is at work or was stopped by a limit goes on with what its file says now', async () => {
  const dir = join(folder.path, 'changed');
  // A host of its own: it is asked more slowly than any test waits.
  const sources = [site.url.replace('127.0.0.1', '127.0.0.2')];
  const slow = { sources, politeness: { rate: 0.001, adaptive: false, robots: false } };
  const limited = writeJob(join(folder.path, 'limited.json'), { limits: { pages: 3 } });
  const paced = writeJob(join(folder.path, 'paced.json'), slow);
  const server = await serve(dir, limited, paced);
  const status = async (name: string) => lastJson(await seine(['status', name, '--json', '--dir', dir]));
  await server.until(2);
  expect(server.lines[1]).toMatchObject({ id: 'limited-1', state: 'stopped' });
  await expect.poll(async () => (await status('paced')).done, { timeout: 60_000 }).toBe(1);

  writeJob(limited);
  writeJob(paced, { sources, politeness: { rate: 'max', robots: false } });
  await server.until(4);
  expect(server.lines.slice(2).map(({ id, state, done }) => ({ id, state, done }))).toEqual(
    expect.arrayContaining(['limited-1', 'paced-1'].map((id) => ({ id, state: 'done', done: PAGES }))),
  );
  await end(server);
});

test('a run whose job file says something else is stopped, and can go on; then the new run begins', async () => {
  const dir = join(folder.path, 'replaced');
  const file = writeJob(join(folder.path, 'routes.json'));
  const log = join(folder.path, 'routes.log');
  const before = site.log.length;
  site.hold();
  const server = await serveWith({ SEINE_LOG_FILE: log }, dir, file);
  servers.push(server);
  // robots.txt, the home page, and one that is held.
  await site.requests(before + 3);

  writeJob(file, { routes: [{ name: 'page', match: '*', select: { title: 'title' } }] });
  // Its pages are held: the new run could not end before it.
  await server.until(2);
  expect(server.lines[1]).toMatchObject({
    id: 'routes-1',
    state: 'stopped',
    reason: 'its job file has changed: routes',
  });
  site.release();
  await server.until(3);
  expect(server.lines[2]).toMatchObject({ id: 'routes-2', state: 'done', done: PAGES, records: PAGES });
  expect(readFileSync(log, 'utf8')).toMatch(/routes-2 .*has changed: routes; .*seine resume routes-1/);
  const db = new DatabaseSync(join(dir, 'seine.db'), { readOnly: true });
  const { ended } = db.prepare('SELECT ended_at AS ended FROM jobs WHERE run = 1').get() as { ended: number };
  const { first } = db
    .prepare(
      'SELECT min(started_at) AS first FROM attempts JOIN jobs ON jobs.id = attempts.job_id WHERE run = 2',
    )
    .get() as { first: number };
  db.close();
  expect(first).toBeGreaterThanOrEqual(ended);
  const resumed = await seine(['resume', 'routes-1', '--json', '--dir', dir]);
  expect(lastJson(resumed)).toMatchObject({ id: 'routes-1', state: 'done', done: PAGES });
  await end(server);
});

test('a job that a server runs goes on with another pace when it is submitted again', async () => {
  const dir = join(folder.path, 'submitted-again');
  const file = writeJob(join(folder.path, 'again.json'), {
    politeness: { rate: 0.001, adaptive: false, robots: false },
  });
  const server = await serve(dir, file);
  const status = async () => lastJson(await seine(['status', 'again', '--json', '--dir', dir]));
  await expect.poll(async () => (await status()).done, { timeout: 60_000 }).toBe(1);
  const other = join(folder.path, 'other-place');
  mkdirSync(other);
  const faster = writeJob(join(other, 'again.json'), { politeness: { rate: 'max', robots: false } });
  const ran = await seine(['run', faster, '--json', '--dir', dir]);
  expect(lastJson(ran)).toMatchObject({ id: 'again-1', state: 'done', done: PAGES });
  // Its end is told once: that it went on with another pace was none.
  await server.until(2);
  expect(server.lines.slice(1)).toMatchObject([{ id: 'again-1', state: 'done' }]);
  await end(server);
});

test('a job that was finished at another pace than that of its file is not run again by the next server', async () => {
  const dir = join(folder.path, 'tuned');
  const tuned = writeJob(join(folder.path, 'tuned.json'), {
    politeness: { rate: 0.001, adaptive: false, robots: false },
  });
  const first = await serve(dir, tuned);
  const status = async () => lastJson(await seine(['status', 'tuned', '--json', '--dir', dir]));
  await expect.poll(async () => (await status()).done, { timeout: 60_000 }).toBe(1);
  const ran = await seine(['resume', 'tuned', '--rate', 'max', '--json', '--dir', dir]);
  expect(lastJson(ran)).toMatchObject({ id: 'tuned-1', state: 'done', done: PAGES });
  await end(first);
  // When the other one is done, on a host of its own, both files have been looked at.
  const sources = [site.url.replace('127.0.0.1', '127.0.0.2')];
  const second = await serve(dir, tuned, writeJob(join(folder.path, 'beside.json'), { sources }));
  await second.until(2);
  const { stdout } = await seine(['jobs', '--json', '--dir', dir]);
  const ids = (JSON.parse(stdout) as { id: string }[]).map(({ id }) => id);
  expect(ids.sort()).toEqual(['beside-1', 'tuned-1']);
  await end(second);
});

test('a job file whose code cannot be stored is tried again, and others go on meanwhile', async () => {
  const dir = join(folder.path, 'unstored');
  const inTheWay = join(dir, 'bundles');
  mkdirSync(dir);
  writeFileSync(inTheWay, 'a file where a folder is needed');
  const code = join(folder.path, 'coded.mjs');
  const job = { sources: [site.url], follow: true, allowPrivate: true, politeness: { rate: 'max' } };
  const routes = "[{ name: 'all', match: '*', handler: () => undefined }]";
  writeFileSync(code, `export default { ...${JSON.stringify(job)}, routes: ${routes} };`);
  const server = await serve(dir, code, writeJob(join(folder.path, 'plain.json')));
  await server.until(2);
  expect(server.lines[1]).toMatchObject({ id: 'plain-1', state: 'done' });
  rmSync(inTheWay);
  await server.until(3);
  expect(server.lines[2]).toMatchObject({ id: 'coded-1', state: 'done', done: PAGES });
  expect((await end(server)).stderr).toContain('cannot start coded');
});

test('a job whose rows or code are broken ends alone', async () => {
  const dir = join(folder.path, 'rows');
  const names = ['spec', 'meta', 'priorities', 'good'];
  const files = names.map((name) => {
    const list = join(folder.path, `${name}.csv`);
    const rows = Array.from({ length: 5 }, (_, at) => `${site.url}page/${at + 1}.html,x`);
    writeFileSync(list, ['url,name', ...rows].join('\n'));
    // So slow that it is far from its end when the server is killed.
    const politeness = { rate: 0.001, adaptive: false };
    return writeJob(join(folder.path, `${name}.json`), { sources: [list], follow: false, politeness });
  });
  const code = join(folder.path, 'code.mjs');
  writeFileSync(code, "throw new Error('the code of this job is broken');");
  const before = await serve(dir, code, ...files);
  const stored = async () => {
    const { stdout } = await seine(['jobs', '--json', '--dir', dir]);
    return (JSON.parse(stdout) as { accepted: number }[]).filter(({ accepted }) => accepted === 5).length;
  };
  await expect.poll(stored, { timeout: 60_000 }).toBe(names.length);
  expect((await before.started.killTree()).stderr).toContain('the code of this job is broken');
  const db = new DatabaseSync(join(dir, 'seine.db'));
  const ofJob = (name: string) => `(SELECT id FROM jobs WHERE name = '${name}')`;
  db.exec(`
    UPDATE jobs SET spec = '{"nonsense":1}' WHERE name = 'spec';
    UPDATE tasks SET meta = '{"name' WHERE job_id = ${ofJob('meta')};
    UPDATE jobs SET priorities = '[{' WHERE name = 'priorities';
    UPDATE jobs SET spec = json_set(spec, '$.politeness.rate', 'max') WHERE name <> 'spec';
    UPDATE hosts SET next_at = 0; UPDATE queues SET next_at = 0;`);
  db.close();
  const server = await serve(dir);
  await server.until(1 + names.length);
  const ended = (name: string) => server.lines.find(({ id }) => id === `${name}-1`);
  expect(ended('spec')).toMatchObject({ state: 'stopped', reason: expect.stringContaining('nonsense') });
  expect(ended('meta')).toMatchObject({ state: 'stopped', reason: expect.stringContaining('JSON') });
  for (const name of ['priorities', 'good']) expect(ended(name)).toMatchObject({ state: 'done', done: 5 });
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  await end(server);
});

test('commands work while a server owns the folder', async () => {
  const dir = join(folder.path, 'commands');
  const of = async (...args: string[]) => {
    const ran = await seine([...args, '--json', '--dir', dir]);
    expect({ args, ...ran }).toMatchObject({ code: 0 });
    return ran;
  };
  // So many pages that the jobs are not over before all commands have been tried, on a busy machine either.
  const large = await startLinkedSite({ pages: 1_000 });
  const slow = { sources: [large.url], politeness: { rate: 2, adaptive: false, parallel: 1 } };
  const files = ['slow', 'other'].map((name) => writeJob(join(folder.path, `${name}.json`), slow));
  const gone = writeJob(join(folder.path, 'gone.json'), {
    sources: ['http://127.0.0.1:1/'],
    follow: false,
    retry: { attempts: 1 },
    politeness: { robots: false },
  });
  const server = await serve(dir, ...files, gone);
  await server.until(2);

  const second = await seine(['serve', '--dir', dir]);
  expect(second.stderr).toContain(`a server is running in ${dir}`);
  expect(second.stderr).toContain('`seine run` submits a job to it');

  // A job that is finished goes on, by the server, with what is added.
  const added = await of(
    'add',
    'gone',
    new URL('/page/1.html', site.url).href,
    'http://127.0.0.1:1/',
    '--priority',
    '5',
  );
  expect(lastJson(added)).toMatchObject({ accepted: 1, duplicates: 1, state: 'running', alive: true });
  await server.until(3);
  expect(server.lines[2]).toMatchObject({ id: 'gone-1', state: 'done', done: 1, dead: 1 });
  expect(lastJson(await of('dead', 'gone', '--retry'))).toMatchObject({ retried: 1 });
  await server.until(4);
  expect(server.lines[3]).toMatchObject({ id: 'gone-1', state: 'done', done: 1, dead: 1 });

  await expect
    .poll(async () => lastJson(await of('status', 'slow')).done, { timeout: 120_000 })
    .toBeGreaterThan(1);
  // While all that was found is on its way to the host, nothing waits for it.
  const limit = async () => lastJson(await of('hosts', 'slow')).limitedBy;
  await expect.poll(limit, { timeout: 120_000 }).toContain('in turns with other-1');
  expect(lastJson(await of('priority', 'slow', '/page/*', '7'))).toMatchObject({ priority: 7, alive: true });
  const exported = await seine(['export', 'slow', '--what', 'tasks', '--dir', dir]);
  const tasks = jsonLines(exported.stdout);
  expect(tasks.filter(({ state }) => state === 'done').length).toBeGreaterThan(1);

  await of('cancel', 'other');
  await server.until(5);
  expect(server.lines[4]).toMatchObject({ id: 'other-1', state: 'cancelled' });

  await of('stop', 'slow');
  await server.until(6);
  expect(server.lines[5]).toMatchObject({ id: 'slow-1', state: 'stopped' });

  const resume = ['resume', 'slow', '--dir', dir];
  const detached = await atTerminal(resume, '\x03');
  expect(detached).toMatchObject({
    code: 130,
    output: expect.stringContaining('slow-1 goes on at the server'),
  });
  expect(lastJson(await of('status', 'slow'))).toMatchObject({ state: 'running' });
  const stopped = await atTerminal(resume, 'y');
  expect(stopped).toMatchObject({ code: 130, output: expect.stringContaining('slow-1 stops') });
  await server.until(7);
  expect(server.lines[6]).toMatchObject({ id: 'slow-1', state: 'stopped' });
  await end(server);
  await large.close();
});
