import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { S3Bucket } from '../../../src/aws/s3/s3-bucket.ts';
import { openS3Files } from '../../../src/aws/s3/s3-files.ts';
import { S3_ENV, type S3Server, startS3Server } from '../../support/servers/s3-server.ts';
import { parquetOf, textColumn, urlsUpTo } from '../../support/sources/parquet-files.ts';
import {
  continuesAnywhere,
  openSourceSetup,
  type SourceSetup,
  urlsOf,
} from '../../support/sources/source-files.ts';

let server: S3Server;
let bucket: S3Bucket;
let setup: SourceSetup;

beforeAll(async () => {
  Object.assign(process.env, S3_ENV);
  server = await startS3Server({ listMax: 3 });
  const settings = { endpoint: server.endpoint, region: 'eu-central-1', pathStyle: true };
  bucket = new S3Bucket(settings, server.bucket);
  setup = await openSourceSetup({ s3: async () => openS3Files(settings) });
});
afterAll(async () => {
  await setup.close();
  await bucket.close();
  await server.close();
});

const s3 = (key: string) => `s3://${server.bucket}/${key}`;

describe('Parquet in S3', () => {
  const HOSTS = ['a', 'b', 'c', 'd', 'e'];
  beforeAll(async () => {
    for (const host of HOSTS) {
      const wide = textColumn(urlsUpTo(4_000, host).map((url) => url.repeat(4)));
      const columns = { url: textColumn(urlsUpTo(4_000, host)), wide };
      await bucket.put(
        `in/${host}.parquet`,
        parquetOf(columns, { rowGroupSize: 1_500, codec: 'UNCOMPRESSED' }),
      );
    }
    await bucket.put('in/c.parquet', Buffer.from('this is not Parquet at all'));
    await bucket.put('in/deep/f.parquet', Buffer.from('this is not asked for'));
    await bucket.put('in/readme.txt', Buffer.from('nor is this'));
  });

  test('all files of a prefix; a broken one is one entry; any row can be continued after', async () => {
    const source = { file: s3('in/*.parquet'), meta: [] };
    await setup.check(source);
    const rows = await setup.rows(source);
    const read = HOSTS.filter((host) => host !== 'c').flatMap((host) => urlsUpTo(4_000, host));
    expect(urlsOf(rows).filter((url) => !url.startsWith('!'))).toEqual(read);
    expect(rows.filter(({ row }) => 'reason' in row)).toMatchObject([
      { place: 'c.parquet', row: { reason: expect.stringMatching(/Parquet/) } },
    ]);
    const indexes = [0, 3_999, 7_999, 8_000, 8_001, rows.length - 1];
    expect(await continuesAnywhere(rows, (position) => setup.rows(source, position), indexes)).toBeNull();
  });

  test('an object that vanishes is one entry, and a single one can be named', async () => {
    const all = await setup.rows(s3('in/*.parquet'));
    const inside = all.findIndex(({ place }) => place.startsWith('d.parquet'));
    await bucket.delete('in/d.parquet');
    const rest = await setup.rows(s3('in/*.parquet'), all[inside]!.position);
    expect(urlsOf(rest)).toEqual(['! it was removed before it was read completely', ...urlsUpTo(4_000, 'e')]);
    expect(urlsOf(await setup.rows(s3('in/a.parquet')))).toEqual(urlsUpTo(4_000, 'a'));
  });
});

test('lists in S3, compressed or not, are files by their name', async () => {
  await bucket.put('lists/1.csv', Buffer.from('url,n\nhttps://a.example/1,x\nhttps://a.example/2,y\n'));
  await bucket.put('lists/2.jsonl', Buffer.from('{"url":"https://a.example/3"}\n'));
  const rows = await setup.rows(s3('lists/1.csv'));
  expect(urlsOf(rows)).toEqual(['https://a.example/1', 'https://a.example/2']);
  expect(await continuesAnywhere(rows, (position) => setup.rows(s3('lists/1.csv'), position))).toBeNull();
  expect(urlsOf(await setup.rows(s3('lists/*.jsonl')))).toEqual(['https://a.example/3']);
});

test.each([
  ['absent.parquet', /no such file/],
  ['none/*.csv', /no file matches/],
  ['in/', /unknown format of/],
])('%s is refused before anything starts', async (key, message) => {
  await expect(setup.check(s3(key))).rejects.toThrow(message);
});
