import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, startSeine, temporaryFolder } from '../../support/seine-process.ts';
import { startPostgres } from '../../support/servers/services.ts';
import { type Answer, openRobotsWeb, type RobotsWeb, sendTo, text } from '../../support/sites/robots-web.ts';

const RULES = 'User-agent: *\nDisallow: /no';
let folder: ReturnType<typeof temporaryFolder>;
let web: RobotsWeb;

beforeEach(() => {
  folder = temporaryFolder();
});

afterEach(async () => {
  await web.close();
  folder.remove();
});

const open = async (answers: Record<string, Answer>) => {
  web = await openRobotsWeb(answers);
};

const pages = (address: string, count: number) =>
  Array.from({ length: count }, (_, n) => web.url(address, `/page/${n}`));

const writeJob = (sources: string[], politeness: object, more: object = {}) => {
  const file = join(folder.path, 'job.json');
  const job = { name: 'piggybacked', allowPrivate: true, sources, ...more };
  writeFileSync(file, JSON.stringify({ ...job, politeness: { adaptive: false, ...politeness } }));
  return file;
};

const dir = () => ['--dir', join(folder.path, 'seine')];
const run = async (file: string, ...flags: string[]) =>
  lastJson(await seine(['run', file, '--workers', '2', '--json', ...dir(), ...flags]));

/** What is known of a host. Gaps are those of the senders: this process is too busy to be a judge of milliseconds. */
const factsOf = async (address: string) => {
  const hosts = jsonLines((await seine(['hosts', '--json', ...dir()])).stdout);
  return hosts.find(({ host }) => host === new URL(web.url(address)).host)!;
};

/** How many coordinators are at work on a job. */
async function coordinatorsOf(store: string): Promise<number> {
  const client = new pg.Client({ connectionString: store });
  await client.connect();
  try {
    const { rows } = await client.query('SELECT count(*)::integer AS count FROM seine.coordinator_jobs');
    return rows[0].count;
  } catch {
    // The tables are not there yet.
    return 0;
  } finally {
    await client.end();
  }
}

describe('where the robots.txt of another host is asked for', () => {
  test('pages of that host do not keep it waiting, and go on at their pace', async () => {
    await open({
      '127.1.1.1/robots.txt': sendTo('127.1.1.2', '/one.txt'),
      '127.1.1.2/one.txt': text(RULES),
      '127.1.1.3/robots.txt': sendTo('127.1.1.2'),
      '127.1.1.2/robots.txt': text(RULES),
    });
    const own = pages('127.1.1.2', 100);
    const others = [web.url('127.1.1.1', '/no'), web.url('127.1.1.1', '/yes'), web.url('127.1.1.3', '/no')];
    const result = await run(writeJob([...own, ...others], { rate: 20 }, { batchSize: 8 }));
    expect(result).toMatchObject({ state: 'done', accepted: 103, done: 101, skipped: 2 });
    const asked = web.asked('127.1.1.2');
    expect(asked).toHaveLength(102);
    expect(asked.filter((path) => path === '/robots.txt')).toHaveLength(1);
    expect(asked.indexOf('/one.txt')).toBeLessThan(80);
    expect((await factsOf('127.1.1.2')).smallestGapMs).toBeGreaterThanOrEqual(50);
    expect(web.asked('127.1.1.1')).toEqual(['/robots.txt', '/yes']);
  });

  test('the time that it wants between requests counts for the host that redirects', async () => {
    await open({
      '127.1.2.1/robots.txt': sendTo('127.1.2.2', '/slow.txt'),
      '127.1.2.2/slow.txt': text('User-agent: *\nCrawl-delay: 0.5'),
    });
    const sources = [...pages('127.1.2.1', 4), ...pages('127.1.2.2', 20)];
    expect(await run(writeJob(sources, { rate: 20 }))).toMatchObject({ done: 24 });
    expect(web.asked('127.1.2.1')).toHaveLength(5);
    expect(web.lastedMs('127.1.2.1', 1)).toBeGreaterThan(3 * 500 * 0.6);
    // And for no other.
    expect((await factsOf('127.1.2.2')).smallestGapMs).toBeLessThan(500);
    const { robots } = await factsOf('127.1.2.1');
    expect((robots as object[])[0]).toMatchObject({
      crawlDelayMs: 500,
      detail: expect.stringContaining('/slow.txt'),
    });
  });

  test('after kill -9 in the middle of it, only the last question is asked again', async () => {
    let hung: () => void = () => {};
    const isAsked = new Promise<void>((resolve) => {
      hung = resolve;
    });
    let answers = 0;
    await open({
      '127.1.3.1/robots.txt': sendTo('127.1.3.2'),
      '127.1.3.2/robots.txt': sendTo('127.1.3.3', '/last'),
      '127.1.3.3/last': (response, ...rest) => (answers++ === 0 ? hung() : text(RULES)(response, ...rest)),
    });
    const sources = [web.url('127.1.3.1', '/no'), web.url('127.1.3.1', '/yes')];
    const file = writeJob(sources, { rate: 20 });
    const first = startSeine(['run', file, '--workers', '2', '--json', ...dir()]);
    await isAsked;
    await first.killTree();
    expect(await run(file)).toMatchObject({ state: 'done', accepted: 2, done: 1, skipped: 1 });
    expect(web.asked('127.1.3.1')).toEqual(['/robots.txt', '/yes']);
    expect(web.asked('127.1.3.2')).toEqual(['/robots.txt']);
    expect(web.asked('127.1.3.3')).toEqual(['/last', '/last']);
  });

  test('hosts that are counted together go on meanwhile, and share the rate with it', async () => {
    const other = await openRobotsWeb({ '127.1.4.1/robots.txt': text(RULES) });
    try {
      await open({
        '127.1.4.1/robots.txt': (response) =>
          response.writeHead(302, { location: other.url('127.1.4.1', '/robots.txt') }).end(),
        '127.1.4.2/robots.txt': sendTo('127.1.4.1', '/else'),
        '127.1.4.1/else': text(RULES),
      });
      const sources = ['/no', '/yes'].flatMap((path) =>
        ['127.1.4.1', '127.1.4.2'].map((address) => web.url(address, path)),
      );
      const job = writeJob([...sources, ...pages('127.1.4.2', 3)], { rate: 20, groupBy: 'address' });
      expect(await run(job)).toMatchObject({ state: 'done', accepted: 7, done: 5, skipped: 2 });
      expect(other.asked('127.1.4.1')).toEqual(['/robots.txt']);
      expect(web.asked('127.1.4.1').sort()).toEqual(['/else', '/robots.txt', '/yes']);
    } finally {
      await other.close();
    }
  });

  test('two coordinators on one database ask for it once', async () => {
    const server = await startPostgres();
    try {
      const addresses = Array.from({ length: 16 }, (_, n) => `127.1.5.${n + 1}`);
      const store = await server.createDatabase();
      // One that begins after the other has ended begins a run of its own.
      const joined = Promise.withResolvers<void>();
      await open({
        '*/robots.txt': sendTo('127.1.6.1', '/all'),
        '127.1.6.1/all': (...args) => void joined.promise.then(() => text(RULES)(...args)),
      });
      const sources = addresses.flatMap((address) => [web.url(address, '/no'), ...pages(address, 8)]);
      const file = writeJob(sources, { rate: 20 }, { batchSize: 4 });
      const shared = ['--blobs', join(folder.path, 'blobs'), '--store', store, '--json', '--workers', '1'];
      const runs = ['a', 'b'].map(
        (name) => startSeine(['run', file, '--dir', join(folder.path, name), ...shared]).finished,
      );
      await expect.poll(() => coordinatorsOf(store), { interval: 200 }).toBe(2);
      joined.resolve();
      for (const end of await Promise.all(runs))
        expect(lastJson(end)).toMatchObject({ state: 'done', accepted: 144, done: 128, skipped: 16 });
      expect(web.asked('127.1.6.1')).toEqual(['/all']);
      for (const address of addresses) {
        expect(web.asked(address)[0]).toBe('/robots.txt');
        expect(web.asked(address)).toHaveLength(9);
      }
    } finally {
      await server.stop();
    }
  });
});
