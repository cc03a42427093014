import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeBatch, type OpenBatch } from '../../../src/coordinator/plan/open-batch.ts';
import { AccessAssigner } from '../../../src/coordinator/proxies/access-assigner.ts';
import { type JobAccess, loadJobAccess } from '../../../src/coordinator/proxies/job-access.ts';
import { changeOf } from '../../../src/coordinator/settle/settle-tasks.ts';
import { type Report, WIRE_VERSION } from '../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../src/core/failures.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import type { Job, Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { createJob, specOf, T0, temporaryFolder, traceOf } from '../../support/fixtures.ts';

const JOB: Partial<JobInput> = {
  identity: { secretHeaders: { 'https://a.example': { Authorization: { env: 'TOKEN' } } } },
  proxies: { pools: { dc: { from: { env: 'LIST' } } }, default: 'dc' },
  api: { url: 'https://api.example/?k={key}&u={url}', key: { env: 'KEY' } },
  retry: { attempts: 3 },
};
const VALUES: Record<string, string> = {
  TOKEN: ' Bearer t0ken \n',
  LIST: 'http://u:pass-one@h1:1\nhttp://u:pass-two@h2:1',
  KEY: 'the-key\n',
};

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let store: Store;
let job: Job;
let outside: JobAccess;
let now = T0;
const told: string[] = [];
const logger = { info() {}, warn: (message: string) => void told.push(message), error() {} };

beforeEach(async () => {
  folder = await temporaryFolder();
  store = openSqliteStore(join(folder.dir, 'seine.db'));
  job = { ...(await createJob(store)), spec: specOf(JOB) };
  outside = await loadJobAccess(job.spec, async (ref) => VALUES['env' in ref ? ref.env : '']!);
  now = T0;
  told.length = 0;
});
afterEach(async () => {
  await store.close();
  await folder.remove();
});

function openAssigner(): AccessAssigner {
  return new AccessAssigner(outside, {
    store,
    job,
    logger,
    clock: { now: () => now },
    random: { next: () => 0 },
  });
}

/** A batch of one task for each URL, which goes through the pool. */
function batchOf(...urls: string[]): OpenBatch {
  const permit = { host: 'a.example', startAt: T0, endAt: T0, gapMs: 0, parallel: 1 };
  const tasks = urls.map((url, index) => ({
    id: index + 1,
    url,
    hostId: 1,
    depth: 0,
    route: null,
    attempt: 1,
    hops: 0,
    meta: null,
    lastVisit: null,
  }));
  const grants = [{ hostId: 1, count: urls.length, nextAt: T0, permit }];
  const open = makeBatch(job, grants, { id: 1, tasks }, { budgetMs: 1, epoch: '', robots: [] });
  for (const task of open.batch.tasks)
    task.fetchMethod = { level: 0, fetcher: 'http', headers: 'full', identity: null, pool: 'dc' };
  return open;
}

function failureOf(taskId: number, code: FailureCode, proxy: string): Outcome {
  const via = { rung: 0, fetcher: 'http' as const, identity: null, proxy };
  return {
    kind: 'failed',
    taskId,
    code,
    detail: '',
    page: null,
    retryAfterMs: null,
    trace: traceOf({ via, httpStatus: null }),
  };
}

function reportOf(outcomes: Outcome[]): Report {
  return {
    version: WIRE_VERSION,
    batchId: 1,
    part: 0,
    final: true,
    worker: 'w',
    startedAt: T0,
    durationMs: 1,
    permits: [],
    robots: [],
    outcomes,
    quality: [],
    archive: null,
  };
}

const note = (assigner: AccessAssigner, open: OpenBatch, ...outcomes: Outcome[]) =>
  assigner.note(open, reportOf(outcomes), outcomes);

describe('what a job has outside', () => {
  test('is given to the batches that need it', () => {
    const open = batchOf('https://a.example/1', 'https://b.example/1');
    open.batch.tasks[1]!.fetchMethod = { ...open.batch.tasks[1]!.fetchMethod!, fetcher: 'api', pool: null };
    openAssigner().attachSecrets(open);
    expect(open.batch.apiKey).toBe('the-key');
    expect(open.batch.secretHeaders).toEqual({ 'https://a.example': { Authorization: 'Bearer t0ken' } });
    expect(open.batch.proxies!.map(({ url }) => url)).toEqual([
      'http://u:pass-one@h1:1',
      'http://u:pass-two@h2:1',
    ]);
    const plain = batchOf('https://c.example/1');
    plain.batch.tasks[0]!.fetchMethod!.pool = null;
    openAssigner().attachSecrets(plain);
    expect(plain.batch).not.toHaveProperty('apiKey');
    expect(plain.batch).not.toHaveProperty('secretHeaders');
    expect(plain.batch).not.toHaveProperty('proxies');
    expect(outside.secrets).toContain('Bearer t0ken');
  });

  test('a task whose proxy is down was not tried; one that fails where others get through was', () => {
    const assigner = openAssigner();
    const open = batchOf('https://a.example/1');
    const [first] = outside.pools[0]!.proxies;
    const failed = failureOf(1, 'proxy', first!.id);
    const { untried } = note(assigner, open, failed);
    expect([...untried]).toEqual([1]);
    const context = { spec: job.spec, follow: [], now: T0, random: () => 0.5, untried };
    expect(changeOf(open.tasks.get(1)!, failed, context)).toMatchObject({
      to: 'pending',
      countsAsAttempt: false,
      dueAt: T0 + 750,
    });
    now += 60_000;
    const both = batchOf('https://a.example/1', 'https://b.example/1');
    const trouble = note(
      assigner,
      both,
      failureOf(2, 'not-found', first!.id),
      failureOf(1, 'proxy', first!.id),
    );
    expect(trouble.untried.size).toBe(0);
  });

  test('a refusal through a proxy that never worked there is worth another, while attempts are left', () => {
    const assigner = openAssigner();
    const open = batchOf('https://a.example/1', 'https://a.example/2');
    open.tasks.get(2)!.attempt = 3;
    const id = outside.pools[0]!.proxies[0]!.id;
    const { elsewhere } = note(assigner, open, failureOf(1, 'forbidden', id), failureOf(2, 'forbidden', id));
    expect([...elsewhere]).toEqual([1]);
  });

  test('what was learned and spent is written down, and read by the next', async () => {
    const assigner = openAssigner();
    const open = batchOf('https://a.example/1');
    const outcomes = outside.pools[0]!.proxies.map(({ id }) => failureOf(1, 'proxy', id));
    note(assigner, open, ...outcomes);
    const fetched = failureOf(1, 'not-found', 'none');
    if (fetched.kind === 'failed') fetched.trace!.via!.cost = 2.5;
    note(assigner, open, fetched);
    await assigner.exchange();
    await assigner.exchange();
    expect(await store.proxies.cost(job.id)).toBe(2.5);

    const next = openAssigner();
    await next.exchange();
    const { outcomes: deferred, permits } = next.attachSecrets(batchOf('https://a.example/1'));
    expect(deferred).toEqual([{ kind: 'deferred', taskId: 1 }]);
    expect(permits).toEqual([{ permit: 0, until: T0 + 5_000 }]);
    const message = /^no proxy of pool 'dc' is usable until \S+ \(2 in total, 2 failed\) since 0 s$/;
    expect(next.tellShortage()).toMatch(message);
    expect(next.tellShortage()).toMatch(message);
    expect(told.length).toBe(1);
    now = T0 + 30_000;
    expect(next.tellShortage()).toBeNull();
    expect(next.attachSecrets(batchOf('https://a.example/1')).outcomes).toEqual([]);
  });
});

describe('secrets that cannot be used', () => {
  const read = (values: Record<string, string>) =>
    loadJobAccess(specOf(JOB), async (ref) => values['env' in ref ? ref.env : '']!);

  test.each([
    [{ LIST: 'http://u:hunter2@h1' }, "the list of pool 'dc': line 1 is not a proxy"],
    [{ LIST: '# none\n' }, "pool 'dc' has no proxies"],
    [{ TOKEN: 'one\ntwo' }, 'the secret for the header Authorization must be one line of plain text'],
  ])('%j are told of, and not quoted', async (change, message) => {
    await expect(read({ ...VALUES, ...change })).rejects.toThrow(message);
    await expect(read({ ...VALUES, ...change })).rejects.not.toThrow(/hunter2|one\ntwo/);
  });

  test('proxies of other countries are left out', async () => {
    const spec = specOf({ proxies: { pools: { de: { from: { env: 'LIST' }, country: 'de' } } } });
    const load = (list: string) => loadJobAccess(spec, async () => list);
    const { pools } = await load('http://a:1 DE\nhttp://b:1 fr\nhttp://c:1');
    expect(pools[0]!.proxies.map(({ host }) => host)).toEqual(['a', 'c']);
    await expect(load('http://b:1 fr')).rejects.toThrow("pool 'de' has no proxies in DE");
  });
});
