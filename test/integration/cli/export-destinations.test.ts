import { execFile } from 'node:child_process';
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AWS_ITSELF, type S3Settings } from '../../../src/aws/s3/s3-client.ts';
import { openDestination } from '../../../src/cli/export/destination.ts';
import { writeParquet } from '../../../src/tables/parquet.ts';
import { openDuckDb } from '../../support/duckdb.ts';
import { temporaryFolder } from '../../support/fixtures.ts';
import { type S3Server, startS3Server } from '../../support/servers/s3-server.ts';

/** Whole under its name, or not there. */

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
const at = (name: string) => join(folder.dir, name);
const open = (path: string, s3: S3Settings = AWS_ITSELF) => openDestination(path, new PassThrough(), s3);

beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder.remove());

describe('a file', () => {
  test('is there when it is finished, and the old one until then', async () => {
    writeFileSync(at('a.csv'), 'old');
    const destination = await open(at('a.csv'));
    await destination.write('new ');
    await destination.write(Buffer.from('bytes'));
    expect(readFileSync(at('a.csv'), 'utf8')).toBe('old');
    await destination.finish();
    expect(readFileSync(at('a.csv'), 'utf8')).toBe('new bytes');
    expect(readdirSync(folder.dir)).toEqual(['a.csv']);
  });

  test('that is given up leaves nothing', async () => {
    const destination = await open(at('a.csv'));
    await destination.write('half');
    await destination.abort();
    expect(readdirSync(folder.dir)).toEqual([]);
  });

  test('whose process is killed has no half under its name', async () => {
    const script = `
      const { openDestination } = await import(${JSON.stringify(join(import.meta.dirname, '../../../src/cli/export/destination.ts'))});
      const destination = await openDestination(${JSON.stringify(at('a.csv'))}, process.stdout, {});
      await destination.write('x'.repeat(1e6));
      process.kill(process.pid, process.argv[1]);
      await new Promise((resolve) => setTimeout(resolve, 20_000));`;
    const run = (signal: string) =>
      promisify(execFile)(process.execPath, ['--input-type=module', '-e', script, signal]).catch(
        (error) => error,
      );
    expect(await run('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
    expect(readdirSync(folder.dir).filter((name) => !name.endsWith('.tmp'))).toEqual([]);
    await folder.remove();
    mkdirSync(folder.dir);
    expect(await run('SIGINT')).toMatchObject({ code: 130 });
    expect(readdirSync(folder.dir)).toEqual([]);
  });

  test('behind a link is replaced, the link stays', async () => {
    mkdirSync(at('real'));
    writeFileSync(at('real/a.csv'), 'old');
    symlinkSync('real/a.csv', at('link.csv'));
    const destination = await open(at('link.csv'));
    await destination.write('new');
    await destination.finish();
    expect(lstatSync(at('link.csv')).isSymbolicLink()).toBe(true);
    expect(readFileSync(at('real/a.csv'), 'utf8')).toBe('new');
  });

  test('with .gz is compressed', async () => {
    const destination = await open(at('a.jsonl.gz'));
    for (let n = 0; n < 1_000; n++) await destination.write(`{"n":${n}}\n`.repeat(50));
    await destination.finish();
    expect(
      gunzipSync(readFileSync(at('a.jsonl.gz')))
        .toString()
        .split('\n'),
    ).toHaveLength(50_001);
  });

  test('that cannot be written is one sentence', async () => {
    for (const path of [at('no/folder/a.csv'), at('no/folder/a.csv.gz'), folder.dir]) {
      const destination = await open(path);
      const write = async () => {
        for (let n = 0; n < 100; n++) await destination.write('x'.repeat(100_000));
        await destination.finish();
      };
      await expect(write()).rejects.toThrow(/^cannot write .*: (ENOENT|EISDIR)/);
      await destination.abort();
    }
  });

  test('that is a device is written directly', async () => {
    const destination = await open('/dev/null');
    await destination.write('x');
    await destination.finish();
    expect(lstatSync('/dev/null').isCharacterDevice()).toBe(true);
  });
});

test('a slow reader is waited for', async () => {
  let waiting = 0;
  let mostWaiting = 0;
  const slow = new Writable({
    highWaterMark: 1_000,
    write(chunk: Buffer, _, then) {
      setImmediate(() => {
        waiting -= chunk.length;
        then();
      });
    },
  });
  const destination = await openDestination(undefined, slow, AWS_ITSELF);
  for (let n = 0; n < 200; n++) {
    waiting += 500;
    mostWaiting = Math.max(mostWaiting, waiting);
    await destination.write('x'.repeat(500));
  }
  expect(mostWaiting).toBeLessThan(3_000);
  expect(slow.writableEnded).toBe(false);
});

test('a table of many row groups is one file for a reader', async () => {
  const columns = [
    { name: 'n', type: 'integer' },
    { name: 'text', type: 'text' },
    { name: 'yes', type: 'boolean' },
    { name: 'json', type: 'json' },
  ] as const;
  async function* rows() {
    for (let n = 0; n < 120_000; n++)
      yield [n, n % 3 === 0 ? null : `text ${n} ${'é'.repeat(40)}`, n % 2 === 0, `{"n":${n}}`];
  }
  const destination = await open(at('many.parquet'));
  expect(await writeParquet({ columns: [...columns], rows: rows() }, destination)).toBe(120_000);
  await destination.finish();
  const duck = await openDuckDb();
  const [sums] = await duck.rows(
    `SELECT count(*)::INT AS rows, sum(n)::INT8::VARCHAR AS n, count(text)::INT AS texts, sum(yes::INT)::INT AS yes,
       sum((json->>'n')::INT)::INT8::VARCHAR AS json FROM '${at('many.parquet')}'`,
  );
  const [groups] = await duck.rows(
    `SELECT count(DISTINCT row_group_id)::INT AS groups FROM parquet_metadata('${at('many.parquet')}')`,
  );
  duck.close();
  expect(sums).toEqual({ rows: 120_000, n: '7199940000', texts: 80_000, yes: 60_000, json: '7199940000' });
  expect(groups!.groups).toBeGreaterThan(1);
});

describe('S3', () => {
  let server: S3Server;
  let s3: S3Settings;
  beforeAll(async () => {
    server = await startS3Server();
    s3 = { endpoint: server.endpoint, region: 'us-east-1', pathStyle: true };
    Object.assign(process.env, server.env);
  });
  afterAll(() => server.close());

  const read = async (key: string) => {
    const { S3Bucket } = await import('../../../src/aws/s3/s3-bucket.ts');
    const bucket = new S3Bucket(s3, server.bucket);
    try {
      return await bucket.head(key);
    } finally {
      await bucket.close();
    }
  };

  test('shows an object when it is whole', async () => {
    const destination = await open(`s3://${server.bucket}/out/a.csv`, s3);
    await destination.write('a,b\r\n');
    expect(await read('out/a.csv')).toBeNull();
    await destination.finish();
    expect(await read('out/a.csv')).toMatchObject({ bytes: 5 });
  });

  test('has nothing of what was given up', async () => {
    const destination = await open(`s3://${server.bucket}/out/b.csv.gz`, s3);
    await destination.write('a'.repeat(100_000));
    await destination.abort();
    expect(await read('out/b.csv.gz')).toBeNull();
    expect(await server.uploads()).toEqual([]);
  });

  test('that refuses is one sentence', async () => {
    const destination = await open('s3://no-such-bucket/a.csv', s3);
    await destination.write('a');
    await expect(destination.finish()).rejects.toThrow(/no-such-bucket/);
    await destination.abort();
  });
});
