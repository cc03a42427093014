import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkKey } from '../../src/blobs/blob-key.ts';
import { csvLine } from '../../src/cli/export/formats.ts';
import { recordTable } from '../../src/cli/export/record-table.ts';
import { judgeQuality } from '../../src/coordinator/reports/quality.ts';
import { SeineError } from '../../src/core/errors.ts';
import { jobSchema } from '../../src/core/job-schema/job-schema.ts';
import { compileHostRules } from '../../src/core/politeness/host-limits.ts';
import { parseProxy } from '../../src/core/proxies/proxy.ts';
import { parseSitemap } from '../../src/core/sitemap/sitemap.ts';
import { normalizeUrl } from '../../src/core/url/url.ts';
import { parseJob } from '../../src/job-file/parse-job.ts';
import type { Job, Store } from '../../src/ports/store.ts';
import { mergedData, RecordDiff } from '../../src/reparse/record-diff.ts';
import { openCsvReader } from '../../src/sources/formats/csv-source.ts';
import { openJsonlReader } from '../../src/sources/formats/line-source.ts';
import { openParquet } from '../../src/sources/parquet/parquet-reader.ts';
import type { FileReader } from '../../src/sources/rows/raw-row.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { writeParquet } from '../../src/tables/parquet.ts';
import { QualitySum } from '../../src/worker/batch/report-parts.ts';
import { LinkedData } from '../../src/worker/records/json-ld.ts';
import { countFilled, mergeEqualKeys, toDrafts } from '../../src/worker/records/record-steps.ts';
import { openBatchCookies } from '../../src/worker/request/cookies.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  leaseOne,
  settlementOf,
  taskOf,
} from '../../test/support/fixtures.ts';
import { HOSTILE_TEXTS } from '../hostile-texts.ts';
import { memoryFiles } from '../memory-files.ts';
import type { Random } from '../random.ts';
import { must, mustEqual, type Target } from '../target.ts';

/**
 * Names that a site or a user chose, in every place where they become keys: fields, columns, headers, cookies, JSON-LD,
 * quality, hosts, proxies, sitemaps, blobs, jobs, and rows of the store. An input is a JSON list of names.
 */

/** No backslash: JSON.parse of Node 24 takes the key `\u2028\"` for `\u2028\\` when it has seen that one before. */
const PIECES = [
  'a',
  'A',
  'b',
  '.',
  '-',
  '_',
  ' ',
  ',',
  ';',
  '"',
  "'",
  '=',
  '/',
  '\0',
  '\n',
  '\r',
  '\t',
  '\u001b',
  '\ufeff',
  '\u2028',
  'é',
  '\u{1f600}',
  '\ud800',
  '\udc00',
  '0',
  '1',
  '#',
  '@',
  '[',
  '%',
  '<',
  '&',
];
const KNOWN = [
  ...HOSTILE_TEXTS,
  '',
  'prototype',
  'valueOf',
  '__defineGetter__',
  'length',
  '@type',
  '@graph',
  '@id',
  'url',
  'key',
  'rest',
  'data.rest',
  'job',
  'data',
  'then',
  'toJSON',
  'a',
  'A',
];

export async function openNamesTarget(): Promise<Target> {
  const dir = await mkdtemp(join(tmpdir(), 'seine-fuzz-'));
  const store = openSqliteStore(join(dir, 'seine.db'));
  const job = await createJob(store);
  let cases = 0;
  return {
    generate: (random: Random) =>
      Buffer.from(
        JSON.stringify(
          random.list(1, 6, () =>
            random.oneIn(2) ? random.pick(KNOWN) : random.text(0, 5, () => random.pick(PIECES)),
          ),
        ),
      ),
    async check(input) {
      const names = namesOf(input);
      if (names.length === 0) return;
      checkRecords(names);
      // Files and databases take long: some of the cases have to do.
      if (input.length % 3 === 0) await checkTables(names);
      await checkSources(names);
      await checkOthers(names);
      if (input.length % 8 === 0) await checkStore(store, job, names, cases++);
    },
    async close() {
      await store.close();
      await rm(dir, { recursive: true });
    },
  };
}

function namesOf(input: Buffer): string[] {
  try {
    const list: unknown = JSON.parse(input.toString('utf8'));
    return Array.isArray(list) ? [...new Set(list.filter((name) => typeof name === 'string'))] : [];
  } catch {
    return [];
  }
}

const dataOf = <T>(names: readonly string[], value: (name: string, index: number) => T) =>
  Object.fromEntries(names.map((name, index) => [name, value(name, index)]));
const sorted = (object: object) => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));

function checkRecords(names: string[]): void {
  const record = dataOf(names, (name) => `value of ${name}`);
  const blank = dataOf(names, () => null);
  mustEqual(sorted(countFilled([record, blank])), sorted(dataOf(names, () => 1)), 'filled fields');
  const sum = new QualitySum();
  for (let times = 0; times < 2; times++)
    for (const route of names)
      sum.add({ route, records: 2, invalid: 0, filled: countFilled([record, blank]) });
  const deltas = sum.take();
  mustEqual(deltas.map(({ route }) => route).sort(), names.toSorted(), 'routes');
  const judged = judgeQuality(
    deltas.map((delta) => ({ pass: 1, ...delta })),
    deltas.map((delta) => ({ pass: 1, ...delta })),
  );
  for (const { fields, drops, score } of judged) {
    mustEqual(sorted(fields), sorted(dataOf(names, () => 0.5)), 'judged fields');
    must(score === 50 && drops.length === 0, `a score of ${score}`);
  }
  const [merged] = mergeEqualKeys([
    { key: 'k', data: record },
    { key: 'k', data: blank },
  ]);
  mustEqual(sorted(merged!.data), sorted(record), 'merged on a page');
  mustEqual(sorted(mergedData(record, blank)), sorted(record), 'merged over pages');
  if (typeof record.toJSON !== 'function') {
    const [draft] = toDrafts([{ key: 'k', data: record }], false);
    mustEqual(sorted(JSON.parse(draft!.json)), sorted(storable(record)), 'as JSON');
  }
  const diff = new RecordDiff();
  must(!diff.add('u', record, record) && diff.add('u', record, blank), 'differences are not seen');
  mustEqual(diff.fields.map(({ field }) => field).sort(), names.toSorted(), 'fields that differ');
  const plain = names.filter((name) => !name.startsWith('@'));
  const linked = new LinkedData([JSON.stringify({ '@type': 'T', ...dataOf(plain, (name) => `of ${name}`) })]);
  for (const name of plain)
    mustEqual(
      [...linked.valuesAt({ type: 'T', steps: [name] })].map(({ value }) => value),
      [`of ${name}`],
      'JSON-LD',
    );
}

/** Records in tables: no column is lost, none is there twice, and what is read back is what was written. */
async function checkTables(all: string[]): Promise<void> {
  // Readers of Parquet take a byte order mark for none of the name.
  const names = all.filter((name) => !name.includes('\ufeff'));
  const data = dataOf(names, (name, index) => `${index} of ${name.toWellFormed().replaceAll('\0', '')}`);
  const read = async function* () {
    yield { key: 'k', data };
  };
  const spec = { ...jobSchema.parse({ sources: 'https://a.example/' }), name: 'x' };
  const table = await recordTable(read, { first: { key: 'text' }, last: {} }, spec);
  const [cells] = await collect(table.rows);
  const columns = table.columns.map(({ name }) => name);
  must(
    new Set(columns.map((name) => name.toLowerCase())).size === columns.length,
    'two columns have one name',
  );
  const text = csvLine(columns) + csvLine(cells!);
  const rows = await rowsOf(openCsvReader(memoryFiles(Buffer.from(text), 100), { urlColumn: 'key' }));
  const expected = columns
    .slice(1)
    .map((name, index): [string, unknown] => [name.toWellFormed(), cells![index + 1] ?? '']);
  mustEqual(rows, [{ url: 'k', meta: Object.fromEntries(expected) }], 'CSV');
  const pieces: Uint8Array[] = [];
  const again = await recordTable(read, { first: { key: 'text' }, last: {} }, spec);
  await writeParquet(again, { write: async (bytes: Uint8Array) => void pieces.push(bytes) } as never);
  const bytes = Buffer.concat(pieces);
  const files = memoryFiles(bytes, 100);
  const parquet = await openParquet({
    size: bytes.length,
    read: (offset, length) => files.read('', offset, length),
  });
  mustEqual(
    parquet.columns,
    columns.map((name) => name.toWellFormed()),
    'columns of Parquet',
  );
  for await (const piece of parquet.pieces(parquet.columns, 0))
    mustEqual(
      piece.columns.map(([value]) => value),
      cells,
      'cells of Parquet',
    );
}

async function rowsOf(reader: FileReader): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const { row } of reader.rows('rows.csv', null)) rows.push(row);
  return rows;
}

async function checkSources(names: string[]): Promise<void> {
  const own = names.filter((name) => name !== 'url');
  const line = JSON.stringify({ url: 'https://a.example/', ...dataOf(own, (name) => ({ [name]: 1 })) });
  const rows = await rowsOf(openJsonlReader(memoryFiles(Buffer.from(line), 7), {}));
  mustEqual(
    rows,
    [{ url: 'https://a.example/', meta: own.length === 0 ? null : dataOf(own, (name) => ({ [name]: 1 })) }],
    'JSON lines',
  );
  const asked = own.slice(0, 1);
  const kept = await rowsOf(openJsonlReader(memoryFiles(Buffer.from(line), 7), { meta: asked }));
  mustEqual(
    kept,
    [
      {
        url: 'https://a.example/',
        meta: asked.length === 0 ? null : dataOf(asked, (name) => ({ [name]: 1 })),
      },
    ],
    'named columns',
  );
}

async function checkOthers(names: string[]): Promise<void> {
  const cookies = await openBatchCookies([]);
  cookies.take(
    'https://h.example/',
    null,
    names.flatMap((name) => [name, name, 'Set-Cookie', `${name}=${name}`]),
  );
  for (const { cookies: kept } of cookies.takeChanges())
    must(
      kept.every(({ name }) => typeof name === 'string'),
      'a cookie has no name',
    );
  const header = cookies.headerFor('https://h.example/', null) ?? '';
  must(!/[\r\n\0]/.test(header), `a cookie ends the line: ${JSON.stringify(header)}`);
  const rules = compileHostRules(dataOf(names, () => ({ rate: 1 })) as never);
  for (const host of ['a.example', 'constructor', '__proto__', 'toString'])
    must(
      names.some((name) => name === host || name.endsWith(host) || name.includes('*')) ||
        rules(host) === null,
      `a rule for ${host}`,
    );
  for (const name of names) {
    parseProxy(name);
    normalizeUrl(`https://${name}/${name}?${name}=${name}`, null, {
      stripTracking: true,
      sortQuery: true,
      trailingSlash: 'keep',
    } as never);
    try {
      must(/^[\w./=-]+$/.test(checkKey(`media/${name}`)), 'a key may have anything');
    } catch (error) {
      must(error instanceof TypeError, `a key throws ${String(error)}`);
    }
    try {
      for (const { url } of parseSitemap(
        `<urlset><url><loc>https://a.example/</loc><${name}>x</${name}><image:${name}>y</image:${name}></url></urlset>`,
        null,
      ).entries)
        must(typeof url === 'string', 'a sitemap has no URL');
    } catch (error) {
      must(error instanceof Error && error.constructor === Error, `a sitemap throws ${String(error)}`);
    }
  }
  const job = {
    sources: 'https://a.example/',
    routes: [{ name: 'r', select: dataOf(names, () => 'h1') }],
    politeness: { hosts: dataOf(names, () => ({ rate: 1 })) },
  };
  await parseJob(job, 'job', 'x').then(
    ({ spec }) => mustEqual(Object.keys(spec.routes[0]!.select!).sort(), names.toSorted(), 'fields of a job'),
    (error: unknown) => must(error instanceof SeineError, `a job throws ${String(error)}`),
  );
}

async function checkStore(store: Store, job: Job, names: string[], number: number): Promise<void> {
  const url = `https://a.example/${number}`;
  const meta = dataOf(names, (name) => ({ [name]: name }));
  await enqueue(store, job, [taskOf(url, { meta })]);
  const { id, tasks } = await leaseOne(store, job);
  mustEqual(tasks.find((task) => task.url === url)?.meta, meta, 'a task of the store');
  const record = { key: url, data: dataOf(names, (name) => `${name} ${number}`) };
  const [draft] = toDrafts([record], true);
  await store.frontier.settle(
    settlementOf(
      job,
      id,
      tasks.map((task) => change.fetched(task.id, { records: [draft!] })),
      { worker: names[0]! },
    ),
  );
  const found = await store.views.record(job.id, url);
  mustEqual(sorted(found!.data), sorted(storable(record.data)), 'a record of the store');
}

/** What no database can hold is replaced: the character 0, and halves of characters. Names that are equal then are one. */
function storable(record: Record<string, unknown>): Record<string, unknown> {
  const text = (value: unknown) => String(value).toWellFormed().replaceAll('\0', '\ufffd');
  const stored: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(record)) stored[text(name)] = text(value);
  return stored;
}
