import { expect, test } from 'vitest';
import { kindOf } from '../../../src/reparse/archived-pages.ts';
import { compileJob } from '../../../src/worker/compile-job.ts';
import { specOf } from '../../support/fixtures.ts';

test('pages are of one kind by their route, or else by what they stand beside', async () => {
  const code = await compileJob(specOf({ routes: [{ name: 'shelf', match: '/category/**' }] }), new Map());
  const lamp = kindOf(code, 'https://a.example/product/1-oak-lamp?from=home');
  expect(kindOf(code, 'https://a.example/product/2-slate-board')).toBe(lamp);
  expect(kindOf(code, 'https://a.example/help/1-returns')).not.toBe(lamp);
  expect(kindOf(code, 'https://b.example/product/1-oak-lamp')).not.toBe(lamp);
  expect(kindOf(code, 'https://a.example/category/lamps')).toBe(
    kindOf(code, 'https://b.example/category/x/y'),
  );
});
