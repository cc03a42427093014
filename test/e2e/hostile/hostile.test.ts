import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import type { TaskRow } from '../../../src/core/model.ts';
import { CASES, type ListedCase, pathsOf } from '../../../src/sites/hostile/behaviours.ts';
import { type HostileCommand, startHostileCommand } from '../../support/hostile/hostile-command.ts';
import { HOSTILE_JOB, PATIENT_TIMEOUTS } from '../../support/hostile/hostile-setup.ts';
import { jsonLines, lastJson, seine, temporaryFolder } from '../../support/seine-process.ts';

const folder = temporaryFolder();
const at = (...parts: string[]) => join(folder.path, ...parts);
let web: HostileCommand;

beforeAll(async () => {
  web = await startHostileCommand();
});

afterAll(async () => {
  const { code, stderr } = await web.stop();
  folder.remove();
  expect([code, stderr]).toEqual([0, '']);
});

/** All behaviours are of one host here, which would rest and be given up long before its last URL. */
const PATIENT: Partial<JobInput> = {
  ...HOSTILE_JOB,
  follow: false,
  politeness: { rate: 'max', parallel: 16, adaptive: false },
  // Pages of hosts that serve a few a second must get their turn: ten attempts are more than seven seconds.
  retry: { attempts: 10, baseMs: 100, maxMs: 1_000 },
  breaker: { hostFailures: 100_000, jobBatches: 100_000 },
};

async function run(name: string, job: Partial<JobInput>, ...args: string[]) {
  writeFileSync(at(`${name}.json`), JSON.stringify({ name, ...job }));
  return seine(['run', at(`${name}.json`), '--dir', at(name), '--json', ...args]);
}

async function tasksOf(name: string): Promise<TaskRow[]> {
  return jsonLines<TaskRow>((await seine(['export', name, '--what', 'tasks', '--dir', at(name)])).stdout);
}

const endingOf = ({ state, failureCode }: TaskRow) =>
  state === 'done' ? 'fetched' : state === 'dead' ? failureCode : state;

describe('seine run over the whole hostile web', () => {
  const wantedOf = (each: ListedCase) => [each.ending, ...(each.or ?? [])];

  test('ends each URL as it should, and loses no worker', async () => {
    // What ends by something else than a timeout does not get a short one: a busy machine may take seconds.
    const isHasty = (each: ListedCase) => wantedOf(each).some((ending) => /timeout$/.test(ending));
    const endings = new Map<string, string | null>();
    const visit = async (name: string, cases: ListedCase[], job: Partial<JobInput>) => {
      const urls = cases.flatMap((each) => pathsOf(each).map((path) => web.url + path));
      writeFileSync(at(`${name}.txt`), urls.join('\n'));
      const result = await run(name, { ...PATIENT, ...job, sources: [{ file: at(`${name}.txt`) }] });
      expect(result.code).toBe(3);
      // Hosts are given up, and nothing else is worth a warning.
      expect(result.stderr.split('\n').filter((line) => !line.startsWith('warning: gave up on '))).toEqual([
        '',
      ]);
      expect(lastJson(result)).toMatchObject({ state: 'done', accepted: urls.length, pending: 0, leased: 0 });
      for (const task of await tasksOf(name)) endings.set(task.url, endingOf(task));
    };
    await Promise.all([
      visit('hasty', CASES.filter(isHasty), {}),
      visit(
        'patient',
        CASES.filter((each) => !isHasty(each)),
        { timeouts: PATIENT_TIMEOUTS },
      ),
    ]);
    const wrong = CASES.flatMap((each) =>
      pathsOf(each)
        .map((path) => ({ path, ended: endings.get(web.url + path) ?? null, wanted: wantedOf(each) }))
        .filter(({ ended, wanted }) => !wanted.some((ending) => ending === ended)),
    );
    expect(wrong).toEqual([]);
  });

  test('a second visit does not believe what servers say of changes', async () => {
    const cases = CASES.filter(({ again }) => again !== undefined);
    const timeouts = PATIENT_TIMEOUTS;
    const job = { ...PATIENT, timeouts, sources: cases.map(({ base }) => web.url + base) };
    expect((await run('again', job)).code).toBe(0);
    expect((await run('again', job, '--refresh')).code).toBe(0);
    const states = (await tasksOf('again')).map(({ state }) => state);
    expect(states).toEqual(cases.map(({ again }) => again));
  });
});

test('traps end by their budgets', async () => {
  const traps = CASES.filter(({ trap }) => trap);
  const result = await run('traps', {
    ...PATIENT,
    timeouts: PATIENT_TIMEOUTS,
    sources: traps.map(({ base }) => `${web.url}${base}`),
    follow: true,
    limits: { perTemplate: 40 },
  });
  expect([result.code, result.stderr]).toEqual([0, '']);
  const summary = lastJson(result);
  expect(summary).toMatchObject({ state: 'done', dead: 0, pending: 0 });
  const tasks = await tasksOf('traps');
  const counts = traps.map(
    ({ base }) => [base, tasks.filter(({ url }) => url.startsWith(web.url + base)).length] as const,
  );
  // Months and days; pages by their number; a folder in itself; of a million links.
  expect(Object.fromEntries(counts)).toEqual({
    '/45-calendar': 1 + 2 * 40,
    '/46-session-ids/query': 1 + 40,
    '/46-session-ids/path': 1 + 40,
    '/46-session-ids/deeper': 5,
    '/47-million-links': 1 + 40,
  });
  expect(summary.dropped).toBeGreaterThan(9_000);
});

describe('seine hostile', () => {
  test('lists what it does', async () => {
    const { code, stdout } = await seine(['hostile', '--list']);
    expect(code).toBe(0);
    for (const { base, what } of CASES)
      expect(stdout).toMatch(new RegExp(`^${base} .*${what.slice(0, 20)}`, 'm'));
  });

  test('says so when its port is taken', async () => {
    const port = new URL(web.url).port;
    const { code, stderr } = await seine(['hostile', '--port', port]);
    expect(code).toBe(2);
    expect(stderr).toMatch(new RegExp(`^seine: cannot listen on port ${port} \\(EADDRINUSE\\)\n`));
  });
});

test('a worker that forbids private addresses does so whatever the job says', async () => {
  const args = ['run', `${web.url}/9-close-without-length`, '--allow-private', '--no-robots', '--json'];
  const env = { SEINE_ALLOW_PRIVATE: 'never' };
  const refused = await seine([...args, '--dir', at('refused')], { env });
  expect(refused.code).toBe(3);
  expect(lastJson(refused)).toMatchObject({ dead: 1, requests: 0 });
  const allowed = await seine([...args, '--dir', at('allowed')]);
  expect(lastJson(allowed)).toMatchObject({ done: 1, requests: 1 });
});
