import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LINKS_PER_REPORT } from '../../../src/worker/batch/report-parts.ts';
import { jsonLines, lastJson, seine, temporaryFolder } from '../../support/seine-process.ts';
import { type ListingSite, startListingSite } from '../../support/sites/listing-site.ts';

/** Rows that are no URLs, from the list to the exit code. */

const LISTED = LINKS_PER_REPORT + 1_500;
const folder = temporaryFolder();
const at = (name: string) => join(folder.path, name);
let site: ListingSite;

beforeAll(async () => {
  const loc = (path: string) => `<url><loc>${path}</loc></url>`;
  site = await startListingSite({
    '/bad.xml': { body: `<urlset>${loc('/page/1')}${loc('ftp://x.example/')}${loc('')}</urlset>` },
    '/long.xml': {
      body: `<urlset>${Array.from({ length: LISTED }, (_, n) => loc(`/page/${n}`)).join('')}</urlset>`,
    },
  });
});

afterAll(async () => {
  await site.close();
  folder.remove();
});

function run(dir: string, args: string[], input?: string) {
  const flags = ['--allow-private', '--rate', 'max', '--no-robots', '--dir', at(dir)];
  return seine(['run', ...args, ...flags], {
    cwd: folder.path,
    env: { SEINE_WORKERS: '1' },
    ...(input === undefined ? {} : { input }),
  });
}

describe('a list of which no row can be used', () => {
  test('ends with an error and a sentence, after a few of its rows', async () => {
    writeFileSync(at('bad.txt'), Array.from({ length: 3_000 }, (_, n) => `row ${n}\n`).join(''));
    const { code, stderr } = await run('all-bad', ['bad.txt']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/\nerror: no row of \S+bad\.txt could be used\n/);
    expect(stderr).toContain('3,000 source rows rejected');
    expect(stderr.split('\n').length).toBeLessThan(40);
    const file = /3,000 rows in total; see (\S+)/.exec(stderr)?.[1];
    expect(jsonLines(readFileSync(file!, 'utf8'))).toHaveLength(3_000);
  });

  test('beside a good one: the good one is done, and the error is told', async () => {
    writeFileSync(at('good.txt'), `${site.origin}/page/1\n`);
    writeFileSync(at('wrong.csv'), 'url,n\nfoo,1\nbar,2\n');
    const finished = await run('one-bad', ['good.txt', 'wrong.csv', '--json']);
    expect(finished.code).toBe(2);
    expect(lastJson(finished)).toMatchObject({
      done: 1,
      rejected: 2,
      error: expect.stringMatching(/^no row of \S+wrong\.csv could be used$/),
    });
  });

  test('and one without any rows is no error, but is told', async () => {
    writeFileSync(at('empty.txt'), '# nothing\n\n');
    const { code, stderr } = await run('empty', ['empty.txt']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/\nno rows in \S+empty\.txt\n/);
  });
});

test('rows of standard input are named by it and their line', async () => {
  const finished = await run('stdin', ['-', '--json'], `${site.origin}/page/1\nexample.com\n`);
  expect(finished.code).toBe(0);
  expect(lastJson(finished).rejects).toEqual([
    { source: 'standard input', place: 'line 2', reason: 'http:// or https:// is missing: "example.com"' },
  ]);
  expect(finished.stderr).toMatch(/^warning: standard input, line 2: /);
});

test('entries of a sitemap that are no URLs are rejected rows, too', async () => {
  const { code, stderr } = await run('sitemap', [`sitemap:${site.origin}/bad.xml`]);
  expect(code).toBe(0);
  expect(stderr).toContain('2 source rows rejected');
  expect(stderr).toContain(
    `  rejected: ${site.origin}/bad.xml, entry 2: not an http(s) URL: "ftp://x.example/"`,
  );
  expect(stderr).toContain(`  rejected: ${site.origin}/bad.xml, entry 3: no URL`);
});

test('a sitemap longer than a part of a report is read to its end, each URL once', async () => {
  const finished = await run('long', [`sitemap:${site.origin}/long.xml`, '--max-pages', '1', '--json']);
  expect(finished.code).toBe(0);
  expect(lastJson(finished)).toMatchObject({ accepted: LISTED + 1, duplicates: 0, dead: 0, leased: 0 });
});

describe('what would be ignored is refused', () => {
  test.each([
    [
      '--pack without media',
      ['run', 'good.txt', '--pack', 'webdataset'],
      /--pack needs a job that stores media/,
    ],
    [
      '--media-types without media',
      ['run', 'good.txt', '--media-types', 'image/*'],
      /--media-types needs a job that stores media/,
    ],
    [
      'a format that does not exist',
      ['export', '-o', 'x.xlsx'],
      /unknown file format \.xlsx\n.*\.jsonl, \.csv, \.parquet/,
    ],
    ['JSON that would be JSON lines', ['export', '-o', 'x.json'], /unknown file format \.json\n/],
    ['a list that is named like a job', ['run', 'list.json'], /list\.json is a list, not a job\n.*\.jsonl/],
  ])('%s', async (_, args, sentence) => {
    writeFileSync(at('list.json'), JSON.stringify([{ url: site.origin }]));
    writeFileSync(at('good.txt'), `${site.origin}/page/1\n`);
    const { code, stderr } = await seine([...args, '--dir', at('stdin')], { cwd: folder.path });
    expect(stderr).toMatch(sentence);
    expect(code).toBe(2);
  });
});
