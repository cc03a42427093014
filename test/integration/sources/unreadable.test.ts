import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SeineError } from '../../../src/core/errors.ts';
import { collect } from '../../support/fixtures.ts';
import { openSourceSetup, type SourceSetup, urlsOf } from '../../support/sources/source-files.ts';

const A = 'https://a.example';
let setup: SourceSetup;
beforeAll(async () => {
  setup = await openSourceSetup();
});
afterAll(() => setup.close());

describe('files that cannot be read', () => {
  test.each([
    ['/no/such/file.txt', /no such file/],
    ['/tmp', /format/],
    ['no-such-file.csv', /no such file/],
    ['/no/such/*.txt', /no file matches/],
  ])('%s is refused before anything starts, and when it is read', async (file, message) => {
    await expect(setup.check(file)).rejects.toThrow(SeineError);
    await expect(setup.check(file)).rejects.toThrow(message);
    await expect(setup.rows(file)).rejects.toThrow(message);
  });

  test.each(['[{"url": "https://a.example/1"}]', '\uFEFF \n[\n{"url": "https://a.example/1"}\n]\n'])(
    'a JSON array is no JSON lines: %j',
    async (text) => {
      const file = await setup.add(text, '.jsonl');
      await expect(setup.check(file)).rejects.toThrow(/it is a JSON array, not JSON lines/);
      expect(await setup.rows(file)).toMatchObject([
        { place: 'whole file', row: { reason: expect.stringContaining('a JSON array') } },
      ]);
    },
  );

  test('a folder is no file', async () => {
    await expect(setup.check({ file: setup.dir, format: 'txt' })).rejects.toThrow(/is a folder/);
  });

  test('an unknown ending, unless the format is given', async () => {
    const file = await setup.add(`${A}/1\n`, '.dat');
    await expect(setup.check(file)).rejects.toThrow(/format/);
    expect(urlsOf(await setup.rows({ file, format: 'txt' }))).toEqual([`${A}/1`]);
  });

  test.each(['.txt', '.txt.gz', '.csv', '.csv.gz'])(
    'a file that vanishes before it is read rejects (%s)',
    async (ending) => {
      const path = await setup.add(`url\n${A}/1\n`, ending);
      const source = setup.open(path);
      await rm(path);
      await expect(collect(source.rows(null))).rejects.toThrow(/no such file/);
    },
  );

  test.each(['.txt.gz', '.csv.gz'])(
    'a compressed file that is cut short gives what it has and one entry about the rest (%s)',
    async (ending) => {
      const whole = gzipSync(
        Buffer.from(`url\n${Array.from({ length: 20_000 }, (_, n) => `${A}/${n}`).join('\n')}`),
      );
      const path = join(setup.dir, `cut${ending}`);
      await writeFile(path, whole.subarray(0, whole.length >> 1));
      const rows = await setup.rows(path);
      expect(rows.length).toBeGreaterThan(1_000);
      expect(urlsOf(rows.slice(-1))).toEqual(['! its gzip data is damaged: unexpected end of file']);
      expect(await setup.rows(path, rows.at(-1)!.position)).toEqual([]);
      await writeFile(path, 'this is not gzip at all');
      await expect(setup.check(path)).rejects.toThrow(/not gzip/);
      expect(urlsOf(await setup.rows(path))).toEqual(['! its name ends in .gz, but it is not gzip']);
    },
  );

  test('several compressed members are one list, and compressed text needs no ending to be known', async () => {
    const path = join(setup.dir, 'members.txt');
    await writeFile(path, Buffer.concat([gzipSync(`${A}/1\n${A}/`), gzipSync(`2\n${A}/3\n`)]));
    const rows = await setup.rows(path);
    expect(urlsOf(rows)).toEqual([1, 2, 3].map((n) => `${A}/${n}`));
    expect(urlsOf(await setup.rows(path, rows[1]!.position))).toEqual([`${A}/3`]);
  });
});
