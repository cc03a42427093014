import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { TaskRow } from '../../../src/core/model.ts';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';
import {
  type Answer,
  openRobotsWeb,
  type RobotsWeb,
  sendTo,
  status,
  text,
} from '../../support/sites/robots-web.ts';

const RULES = 'User-agent: *\nDisallow: /no';
const RATE = 20;
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

/** Asks each address for a page that the rules forbid, and one that they do not know. */
const run = async (addresses: string[], more: object = {}, ...flags: string[]) => {
  const file = join(folder.path, 'job.json');
  const sources = addresses.flatMap((address) => [web.url(address, '/no'), web.url(address, '/yes')]);
  const politeness = { rate: RATE, adaptive: false };
  const retry = { attempts: 3, baseMs: 50, maxMs: 100 };
  const job = { name: 'robots', allowPrivate: true, politeness, retry, sources, ...more };
  writeFileSync(file, JSON.stringify(job));
  const dir = join(folder.path, 'seine');
  const done = await seine(['run', file, '--workers', '2', '--dir', dir, '--json', ...flags]);
  return lastJson(done);
};

const tasks = async () => {
  const rows = await seine(['export', '--what', 'tasks', '--dir', join(folder.path, 'seine')]);
  return jsonLines<TaskRow>(rows.stdout);
};

describe('a robots.txt that redirects to another host', () => {
  test('counts for the host that redirects, at its robots.txt, at any other path, over a chain', async () => {
    await open({
      '127.0.1.1/robots.txt': sendTo('127.0.1.2'),
      '127.0.1.2/robots.txt': text(RULES),
      '127.0.1.3/robots.txt': sendTo('127.0.1.4'),
      '127.0.1.4/robots.txt': sendTo('127.0.1.5', '/files/3.txt?v=1'),
      '127.0.1.5/files/3.txt?v=1': text(RULES),
      '127.0.1.5/robots.txt': text('User-agent: *\nDisallow: /'),
    });
    expect(await run(['127.0.1.1', '127.0.1.3'])).toMatchObject({
      state: 'done',
      accepted: 4,
      done: 2,
      skipped: 2,
      dead: 0,
    });
    expect(web.asked('127.0.1.1')).toEqual(['/robots.txt', '/yes']);
    expect(web.asked('127.0.1.2')).toEqual(['/robots.txt']);
    expect(web.asked('127.0.1.3')).toEqual(['/robots.txt', '/yes']);
    expect(web.asked('127.0.1.4')).toEqual(['/robots.txt']);
    expect(web.asked('127.0.1.5')).toEqual(['/files/3.txt?v=1']);
  });

  test('allows everything after a loop, a sixth redirect and a 404, and forbids what is behind the fifth', async () => {
    await open({
      '127.0.2.1/robots.txt': sendTo('127.0.2.2'),
      '127.0.2.2/robots.txt': sendTo('127.0.2.1'),
      '127.0.2.3/robots.txt': sendTo('127.0.2.4', '/1'),
      '127.0.2.4/1': sendTo('127.0.2.5', '/2'),
      '127.0.2.5/2': sendTo('127.0.2.4', '/3'),
      '127.0.2.4/3': sendTo('127.0.2.5', '/4'),
      '127.0.2.5/4': sendTo('127.0.2.4', '/5'),
      '127.0.2.4/5': sendTo('127.0.2.5', '/6'),
      '127.0.2.5/6': text(RULES),
      '127.0.2.6/robots.txt': sendTo('127.0.2.5', '/2'),
      '127.0.2.7/robots.txt': sendTo('127.0.2.8', '/gone'),
      '127.0.2.8/gone': status(404),
    });
    const result = await run(['127.0.2.1', '127.0.2.3', '127.0.2.6', '127.0.2.7']);
    expect(result).toMatchObject({ state: 'done', accepted: 8, done: 7, skipped: 1, dead: 0 });
    for (const address of ['127.0.2.1', '127.0.2.3', '127.0.2.7'])
      expect(web.asked(address).sort()).toEqual(['/no', '/robots.txt', '/yes']);
    expect(web.asked('127.0.2.6')).toEqual(['/robots.txt', '/yes']);
    expect(web.asked('127.0.2.2')).toEqual(['/robots.txt']);
    // Each file of the chain once, though two lead over it.
    expect(web.asked('127.0.2.5').sort()).toEqual(['/2', '/4', '/6']);
  });

  test('that cannot be had is waited for, and then nothing of the host is asked', async () => {
    let answers = 0;
    await open({
      '127.0.3.1/robots.txt': sendTo('127.0.3.2', '/busy'),
      '127.0.3.2/busy': status(503),
      '127.0.3.3/robots.txt': sendTo('127.0.3.4', '/later'),
      '127.0.3.4/later': (response, ...rest) =>
        (answers++ < 2 ? status(500) : text(RULES))(response, ...rest),
      '127.0.3.5/robots.txt': sendTo('127.0.3.2', '/busy'),
    });
    const result = await run(['127.0.3.1', '127.0.3.3', '127.0.3.5']);
    expect(result).toMatchObject({ state: 'done', done: 1, skipped: 1, dead: 4 });
    expect(web.asked('127.0.3.1')).toEqual(['/robots.txt']);
    expect(web.asked('127.0.3.5')).toEqual(['/robots.txt']);
    expect(web.asked('127.0.3.2')).toHaveLength(3);
    expect(web.asked('127.0.3.3')).toEqual(['/robots.txt', '/yes']);
    expect(web.asked('127.0.3.4')).toHaveLength(3);
    const dead = (await tasks()).filter(({ state }) => state === 'dead');
    expect(new Set(dead.map(({ failureCode }) => failureCode))).toEqual(new Set(['robots-unreachable']));
    expect(dead[0]?.failureDetail).toContain(web.url('127.0.3.2', '/busy'));
  });

  test('is asked for once by 40 hosts that share it, at the pace of the host that has it', async () => {
    const addresses = Array.from({ length: 40 }, (_, n) => `127.0.4.${n + 1}`);
    const own = Array.from({ length: 10 }, (_, n) => `127.0.5.${n + 1}`);
    await open({
      ...Object.fromEntries(
        addresses.map((address) => [`${address}/robots.txt`, sendTo('127.0.6.1', '/all')]),
      ),
      ...Object.fromEntries(
        own.map((address) => [`${address}/robots.txt`, sendTo('127.0.6.1', `/${address}`)]),
      ),
      ...Object.fromEntries(own.map((address) => [`127.0.6.1/${address}`, text(RULES)])),
      '127.0.6.1/all': text(RULES),
    });
    const result = await run([...addresses, ...own]);
    expect(result).toMatchObject({ state: 'done', accepted: 100, done: 50, skipped: 50, dead: 0 });
    for (const address of [...addresses, ...own]) expect(web.asked(address)).toEqual(['/robots.txt', '/yes']);
    expect(web.asked('127.0.6.1').sort()).toEqual([...own.map((address) => `/${address}`), '/all'].sort());
    expect(web.lastedMs('127.0.6.1')).toBeGreaterThan((own.length * 1_000 * 0.6) / RATE);
  });
});
