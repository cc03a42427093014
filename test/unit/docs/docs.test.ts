import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { jobFields } from '../../../scripts/docs/job-fields.ts';
import { SECTIONS, withSections } from '../../../scripts/docs/write-docs.ts';
import { COMMANDS } from '../../../src/cli/specs/commands.ts';
import { SETTINGS } from '../../../src/config/schema.ts';
import { LOOK_AHEAD_MS } from '../../../src/coordinator/batch-sender.ts';
import { COMPARABLE_MIN, DROP_MIN, FEW_DROP_MIN, FEW_MIN } from '../../../src/coordinator/reports/quality.ts';
import { ROBOTS_AGE_MS_MAX, ROBOTS_REDIRECTS_MAX } from '../../../src/coordinator/robots/robots-cache.ts';
import { EXIT_CODES } from '../../../src/core/errors.ts';
import { FAILURES, SKIPS } from '../../../src/core/failures.ts';
import { LIMITS } from '../../../src/core/limits.ts';
import { COUNTER_NAMES } from '../../../src/core/model.ts';
import { guardedGapMs } from '../../../src/core/politeness/permits.ts';
import { RETRY_AFTER_MS_MAX } from '../../../src/core/retry/retry.ts';
import { CRAWL_DELAY_MS_MAX } from '../../../src/core/robots/robots.ts';
import { CRASHES_MAX, LOSSES_MAX } from '../../../src/core/suspicion/suspicion.ts';
import { compilePatterns } from '../../../src/core/url/pattern.ts';
import { SEGMENT_REPEATS_MAX } from '../../../src/core/url/url-shape.ts';
import { ORIGINS_PER_WORKER_MAX } from '../../../src/fetch/http/http-fetcher.ts';
import { jobJsonSchema } from '../../../src/job-file/json-schema.ts';
import { parseJob } from '../../../src/job-file/parse-job.ts';
import { Database } from '../../../src/store/sqlite/connection/database.ts';
import { GROUP_ROWS_MAX } from '../../../src/tables/parquet.ts';
import { Page } from '../../../src/worker/page/page.ts';
import {
  ABOUT_SEINE,
  exportedFields,
  firstCells,
  membersOf,
  read,
  rowsOf,
} from '../../support/docs/docs-text.ts';

/** What the code has is documented, and what is documented the code has. */

describe('tables of the code', () => {
  test.each(Object.keys(SECTIONS))('%s repeats them exactly', (path) => {
    // `npx node scripts/docs/write-docs.ts` puts it right.
    expect(read(path)).toBe(withSections(path, read(path)));
  });

  test('settings, with variable and default', () => {
    const rows = rowsOf(read('docs/configuration.md')).slice(1);
    expect(rows.map(([name, env, , shown]) => [name, env, shown])).toEqual(
      Object.entries(SETTINGS).map(([name, { env, shown }]) => [`\`${name}\``, `\`${env}\``, shown]),
    );
  });

  test('commands and options', () => {
    const text = read('docs/cli.md');
    const headings = [...text.matchAll(/^### seine (\S+)$/gm)].map(([, name]) => name);
    expect(headings).toEqual(Object.keys(COMMANDS));
    for (const [name, { options, examples, summary }] of Object.entries(COMMANDS)) {
      const section = text.split(`### seine ${name}\n`)[1]!.split('\n### ')[0]!;
      const documented = [...section.matchAll(/^\| `(?:-\w, )?--([\w-]+)/gm)].map(([, option]) => option);
      expect(documented, name).toEqual(Object.keys(options));
      for (const part of [summary, ...examples]) expect(section).toContain(part);
    }
  });

  test('failure, skip and exit codes', () => {
    expect(firstCells('docs/failure-codes.md', 'failures')).toEqual(Object.keys(FAILURES));
    expect(firstCells('docs/failure-codes.md', 'skips')).toEqual(Object.keys(SKIPS));
    expect(
      rowsOf(read('docs/exit-codes.md'))
        .slice(1)
        .map(([code, name]) => [Number(code), name]),
    ).toEqual(Object.entries(EXIT_CODES).map(([name, { code }]) => [code, name]));
  });

  test('fields of a job, each explained', () => {
    const fields = jobFields();
    expect(firstCells('docs/jobs.md', 'fields')).toEqual(
      expect.arrayContaining(fields.map(({ path }) => path)),
    );
    expect(firstCells('docs/jobs.md', 'fields')).toHaveLength(fields.length);
    expect(fields.filter(({ doc }) => doc === '')).toEqual([]);
    expect(fields.length).toBeGreaterThan(50);
  });

  test('schema/job.json is the schema of the code', () => {
    expect(JSON.parse(read('schema/job.json'))).toEqual(JSON.parse(JSON.stringify(jobJsonSchema())));
  });
});

describe('written by hand, but true', () => {
  test('counters, exported fields and tables of the database', () => {
    for (const name of COUNTER_NAMES) expect(read('docs/cli.md')).toContain(`\`${name}\``);
    const database = new Database(':memory:');
    const tables = database.all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'");
    database.close();
    const section = read('docs/files.md').split('## The database')[1]!;
    const documented = rowsOf(section)
      .slice(1)
      .flatMap(([names]) => [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
    expect(documented.sort()).toEqual(tables.map(({ name }) => name).sort());
    expect(membersOf('TaskRow', 'src/core/model.ts')).toEqual(exportedFields('tasks'));
    expect(membersOf('RecordRow', 'src/core/model.ts')).toEqual(exportedFields('records'));
    expect(membersOf('AttemptRow', 'src/core/model.ts')).toEqual(exportedFields('attempts'));
    expect(membersOf('MediaRow', 'src/core/model.ts')).toEqual(exportedFields('media'));
    expect(membersOf('ShotRow', 'src/core/model.ts')).toEqual(exportedFields('shots'));
    expect(membersOf('RecordVersionRow', 'src/core/model.ts')).toEqual(exportedFields('history'));
    const quality = membersOf('RouteQuality', 'src/coordinator/reports/run-view.ts');
    expect(['job', 'run', 'pass', ...quality]).toEqual(exportedFields('quality'));
    const logged = membersOf('HostLogRow', 'src/core/host-log/host-log.ts');
    expect(exportedFields('hosts').sort()).toEqual(logged.sort());
  });

  test('the Page of a handler', () => {
    const section = read('docs/jobs.md').split('| Page | is |')[1]!.split('\n\n')[0]!;
    const documented = [...section.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`(\w+)/g)].map(([, name]) => name!),
    );
    const page = new Page({
      url: '',
      status: 200,
      contentType: null,
      contentTypeHeader: null,
      headers: [],
      body: Buffer.from(''),
      route: null,
      meta: null,
    });
    const members = [
      ...Object.keys(page),
      ...Object.getOwnPropertyNames(Page.prototype).filter((name) => name !== 'constructor'),
    ];
    expect(documented.sort()).toEqual(members.sort());
  });

  test('the library: options, methods, handle and exports', () => {
    const text = read('docs/library.md');
    for (const type of ['SeineOptions', 'Seine', 'RunHandle'])
      for (const name of membersOf(type, 'src/library.ts'))
        expect(text, `${type}.${name}`).toMatch(new RegExp(`\\| \`${name}\\b`));
    const documented = rowsOf(text)
      .map(([first]) => /^`(\w+)/.exec(first!)?.[1])
      .filter((name) => name !== undefined);
    const members = ['SeineOptions', 'Seine', 'RunHandle'].flatMap((type) =>
      membersOf(type, 'src/library.ts'),
    );
    expect(documented.sort()).toEqual(members.sort());
    const exported = [...read('src/index.ts').matchAll(/\{([^}]*)\}/g)].flatMap(([, names]) =>
      names!.split(',').map((name) => name.replace(/\btype\b/, '').trim()),
    );
    for (const name of exported) expect(text).toMatch(new RegExp(`\\b${name}\\b`));
  });

  test('figures in passing', () => {
    const figures: [path: string, words: string, meant: number, actual: number][] = [
      ['docs/politeness.md', 'up to 60 s', 60_000, CRAWL_DELAY_MS_MAX],
      ['docs/politeness.md', 'obeyed, up to 5 minutes', 300_000, RETRY_AFTER_MS_MAX],
      ['docs/politeness.md', 'a margin: 5.5 %', 0.055 * 250, guardedGapMs(250, null) - 250],
      ['docs/politeness.md', 'at most 30 ms', 30, guardedGapMs(60_000, null) - 60_000],
      ['docs/politeness.md', 'at most 10 minutes', 600_000, LIMITS.hostRestMsMax],
      ['docs/politeness.md', 'kept for a day', 86_400_000, ROBOTS_AGE_MS_MAX],
      ['docs/politeness.md', 'at most five', 5, ROBOTS_REDIRECTS_MAX],
      ['docs/failure-codes.md', 'at most 5 minutes', 300_000, RETRY_AFTER_MS_MAX],
      ['docs/jobs.md', 'over 2,048 characters', 2_048, LIMITS.urlLengthMax],
      ['docs/jobs.md', 'more than four times', 4, SEGMENT_REPEATS_MAX],
      ['docs/jobs.md', 'After 10 redirects', 10, LIMITS.redirectsMax],
      ['docs/records.md', 'at least 20 records', 20, COMPARABLE_MIN],
      ['docs/records.md', '10 points or more', 0.1, DROP_MIN],
      ['docs/records.md', 'from 5 records on', 5, FEW_MIN],
      ['docs/records.md', '50 points or more', 0.5, FEW_DROP_MIN],
      ['docs/exports.md', 'at most 50,000 rows', 50_000, GROUP_ROWS_MAX],
      ['docs/exports.md', 'beyond the first 1,000', 1_000, LIMITS.tableFieldsMax],
      ['docs/reliability.md', 'worker died six times', 6, LOSSES_MAX],
      ['docs/reliability.md', 'coordinator died three times', 3, CRASHES_MAX],
      ['ARCHITECTURE.md', 'within the next 400 ms', 400, LOOK_AHEAD_MS],
      ['ARCHITECTURE.md', '2 × 50,000', 50_000, LIMITS.recentUrlsMax],
      ['ARCHITECTURE.md', '256 origins; 10,000 names', 256, ORIGINS_PER_WORKER_MAX],
    ];
    for (const [path, words, meant, actual] of figures) {
      expect(read(path).replace(/\s+/g, ' '), path).toContain(words);
      expect(actual, `${path}: ${words}`).toBeCloseTo(meant);
    }
  });

  test('patterns match what the table says', () => {
    const rows = rowsOf(read('docs/jobs.md').split('## Patterns')[1]!.split('## Routes')[0]!).slice(1);
    const urlOf = (text: string) => (text.startsWith('/') ? `https://shop.example${text}` : text);
    const spans = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, span]) => urlOf(span!));
    let checked = 0;
    for (const [pattern, , examples] of rows) {
      const matches = compilePatterns([pattern!.slice(1, -1)]);
      const [yes = '', no = ''] = examples!.split(/, not /);
      for (const url of spans(yes)) expect(matches(url), `${pattern} ${url}`).toBe(true);
      for (const url of spans(no)) expect(matches(url), `${pattern} ${url}`).toBe(false);
      checked += spans(yes).length + spans(no).length;
    }
    expect(checked).toBeGreaterThan(6);
  });

  test('jobs shown as code are valid', async () => {
    const blocks = ABOUT_SEINE.flatMap((path) =>
      [...read(path).matchAll(/```yaml[^\n]*\n([\s\S]*?)```/g)].map(([, text]) => ({ path, text: text! })),
    );
    expect(blocks.length).toBeGreaterThan(0);
    for (const { path, text } of blocks) await parseJob(parse(text), path, 'job');
    await parseJob(parse(read('examples/shop.yaml')), 'examples/shop.yaml', 'job');
  });
});
