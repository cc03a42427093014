import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const FOLDER = join(import.meta.dirname, '../../../dist/command');

const parts = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.mjs'))
  .map((name) => readFileSync(join(FOLDER, name), 'utf8'));

test('modules of the bundled command line keep the addresses that the compiler gave them', () => {
  const addresses = parts.flatMap((text) =>
    [...text.matchAll(/__addressOf\("([^"]+)"\)/g)].map(([, path]) => path!),
  );
  expect(addresses).toContain('../app/thread-entries.js');
  expect(addresses.filter((path) => !existsSync(join(FOLDER, path)))).toEqual([]);
});

test('what the bundled command line imports from outside the bundle is there', () => {
  const paths = parts.flatMap((text) =>
    [...text.matchAll(/(?:from |import\()"(\.[^"]+)"/g)].map(([, path]) => path!),
  );
  expect(paths).toContain('../aws/s3/s3-sdk.js');
  expect(paths.filter((path) => !existsSync(join(FOLDER, path)))).toEqual([]);
});
