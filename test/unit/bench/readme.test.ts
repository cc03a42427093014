import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { CrawlData } from '../../../bench/report/crawl-verdict.ts';
import { readmeSection } from '../../../bench/report/readme-section.ts';

const ROOT = join(import.meta.dirname, '../../..');

test('the README has the figures of the last benchmark, as docs/benchmarks.md has', () => {
  const { crawl } = JSON.parse(readFileSync(join(ROOT, 'bench/results/latest.json'), 'utf8')) as {
    crawl: CrawlData;
  };
  expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).toContain(readmeSection(crawl));
});
