import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDuckDb } from '../../support/duckdb.ts';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, temporaryFolder } from '../../support/seine-process.ts';
import { type S3Server, startS3Server } from '../../support/servers/s3-server.ts';
import { type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';

const PAGES = 50;
const folder = temporaryFolder();
const dir = join(folder.path, 'data');
const out = (name: string) => join(folder.path, name);
let site: LinkedSite;
let s3: S3Server;
let duck: Awaited<ReturnType<typeof openDuckDb>>;

beforeAll(async () => {
  site = await startLinkedSite({ pages: PAGES });
  s3 = await startS3Server();
  duck = await openDuckDb();
  const select = ['--select', 'title=h1', '--select', 'price=.price'];
  const run = await seine(
    [
      'run',
      site.url,
      '--follow',
      '--rate',
      'max',
      '--allow-private',
      '--name',
      'site',
      ...select,
      '--dir',
      dir,
    ],
    {},
  );
  expect(run.code, run.stderr).toBe(0);
});

afterAll(async () => {
  duck.close();
  await s3.close();
  await site.close();
  folder.remove();
});

const run = (...args: string[]) => seine(['export', ...args, '--dir', dir]);
const count = async (file: string) =>
  (await duck.rows(`SELECT count(DISTINCT url)::INT AS n FROM '${file}'`))[0]!.n;

test('the ending of the name is the format', async () => {
  for (const name of ['a.jsonl', 'a.csv', 'a.parquet', 'a.csv.gz', 'a.jsonl.gz']) {
    const result = await run('site', '-o', out(name));
    expect(result, name).toMatchObject({ code: 0, stdout: '' });
    expect(result.stderr).toBe(`${PAGES} rows written to ${out(name)}\n`);
    expect(await count(out(name)), name).toBe(PAGES);
  }
  expect(readdirSync(folder.path).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});

test('Parquet also goes to standard output', async () => {
  const bin = join(import.meta.dirname, '../../../bin/seine.js');
  const args = [bin, 'export', 'site', '--what', 'tasks', '--format', 'parquet', '--dir', dir];
  const { stdout } = await promisify(execFile)(process.execPath, args, { encoding: 'buffer' });
  writeFileSync(out('piped.parquet'), stdout);
  expect(await count(out('piped.parquet'))).toBe(PAGES);
});

test('and anything goes to S3', async () => {
  const target = `s3://${s3.bucket}/exports/site.jsonl.gz`;
  const env = { ...s3.env, SEINE_S3_ENDPOINT: s3.endpoint };
  const result = await seine(['export', 'site', '-o', target, '--dir', dir], { env });
  expect(result.code, result.stderr).toBe(0);
  const answer = await fetch(`${s3.endpoint}/${s3.bucket}/exports/site.jsonl.gz`);
  const text = gunzipSync(Buffer.from(await answer.arrayBuffer())).toString();
  expect(jsonLines(text)).toHaveLength(PAGES);
  const refused = await seine(['export', 'site', '-o', 's3://nothing-here/a.csv', '--dir', dir], { env });
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('nothing-here');
});

test('--since is a date or a length of time', async () => {
  expect(jsonLines((await run('site', '--since', '1d')).stdout)).toHaveLength(PAGES);
  expect(jsonLines((await run('site', '--since', '2100-01-01', '--what', 'tasks')).stdout)).toEqual([]);
});

test('what cannot be is one sentence, and the old file stays', async () => {
  writeFileSync(out('old.csv'), 'old');
  const cases: [string[], RegExp][] = [
    [
      ['site', '--what', 'pages', '-o', out('old.csv')],
      /--what must be one of records, tasks, .* got 'pages'/,
    ],
    [['site', '--what', 'recrods', '-o', out('old.csv')], /got 'recrods'; did you mean records\?/],
    [
      ['site', '--format', 'xml', '-o', out('old.csv')],
      /--format must be one of jsonl, csv, parquet, got 'xml'/,
    ],
    [['site', '--since', 'soon', '-o', out('old.csv')], /--since needs a date or a duration, got 'soon'/],
    [['site', '--what', 'quality', '--since', '1d'], /--since does not work with --what quality/],
    [['site', '-o', out('a.parquet.gz')], /Parquet files are already compressed/],
    [['site', '-o', out('no/such/folder.csv')], /cannot write .*folder\.csv: ENOENT/],
    [['other', '-o', out('old.csv')], /no job named 'other'/],
  ];
  for (const [args, sentence] of cases) {
    const result = await run(...args);
    expect(result.code, args.join(' ')).toBe(2);
    expect(result.stderr).toMatch(sentence);
  }
  expect(readFileSync(out('old.csv'), 'utf8')).toBe('old');
});
