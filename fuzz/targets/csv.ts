import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { openCsvReader } from '../../src/sources/formats/csv-source.ts';
import { BrokenFileError, type RawRow } from '../../src/sources/rows/raw-row.ts';
import { memoryFiles } from '../memory-files.ts';
import { mutate } from '../mutate.ts';
import type { Random } from '../random.ts';
import { mustEqual, type Target } from '../target.ts';

/**
 * CSV: in whatever pieces the bytes come, and from wherever reading goes on, the rows are the same; tables without a
 * mistake give the cells that RFC 4180 says, and DuckDB reads the same.
 */

const COLUMNS = ['url', 'url', 'name', 'constructor', '__proto__', 'toString', 'a b', '"', 'é', ''];
const CELLS = [
  'https://a.example/1',
  'https://a.example/1',
  'x',
  '',
  ' ',
  'a,b',
  'a;b',
  'a\tb',
  'say "hi"',
  '"',
  'two\nlines',
  'two\r\nlines',
  'é',
  '\u{1f600}',
  '=1+1',
  '\uFEFF',
  'null',
];
const PIECES = ['"', '""', '\n', '\r\n', '\r', ',', ';', '\t', '\0', '\uFEFF', '"x"y', 'url'];
/** One in so many tables is read by DuckDB too, which takes a hundred times as long. */
const DUCKDB_ONE_IN = 32;

function cell(random: Random, text: string, delimiter: string): string {
  const needsQuotes = text.includes(delimiter) || /["\r\n]/.test(text) || text.startsWith('\uFEFF');
  return needsQuotes || random.oneIn(4) ? `"${text.replaceAll('"', '""')}"` : text;
}

function table(random: Random): string {
  const delimiter = random.pick([',', ',', ';', '\t']);
  const lineEnd = random.pick(['\n', '\n', '\r\n', '\r']);
  const columns = random.list(1, 4, () => random.pick(COLUMNS));
  if (!columns.includes('url')) columns[0] = 'url';
  const row = (texts: string[]) => texts.map((text) => cell(random, text, delimiter)).join(delimiter);
  const rows = random.list(0, 8, () =>
    row(
      random.oneIn(10) ? random.list(0, 6, () => random.pick(CELLS)) : columns.map(() => random.pick(CELLS)),
    ),
  );
  return (
    random.pick(['', '', '', '\uFEFF']) + [row(columns), ...rows].join(lineEnd) + random.pick(['', lineEnd])
  );
}

export async function openCsvTarget(): Promise<Target> {
  const dir = await mkdtemp(join(tmpdir(), 'seine-fuzz-'));
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run('SET threads = 1');
  const file = join(dir, 'table.csv');
  return {
    generate(random) {
      const bytes = Buffer.from(table(random));
      return random.oneIn(2) ? mutate(bytes, random, PIECES) : bytes;
    },
    async check(input) {
      const whole = await rowsOf(input, 65_536, null);
      const size = 1 + (input.length % 9);
      mustEqual(await rowsOf(input, size, null), whole, `in pieces of ${size}`);
      if (whole.rows.length > 0) {
        const middle = whole.rows[whole.rows.length >> 1]!;
        const rest = await rowsOf(input, 65_536, middle.at);
        mustEqual(rest.rows, whole.rows.slice((whole.rows.length >> 1) + 1), 'going on from a row');
      }
      const records = recordsOf(input);
      // Without a column of this very name, one is guessed.
      if (records === null || !records[0]?.includes('url')) return;
      mustEqual(
        whole.rows.map(({ row }) => row),
        expectedRows(records),
        'rows',
      );
      if (createHash('sha256').update(input).digest()[0]! % DUCKDB_ONE_IN === 0)
        await compareWithDuckDb(input, records);
    },
    async close() {
      connection.closeSync();
      instance.closeSync();
      await rm(dir, { recursive: true });
    },
  };

  async function compareWithDuckDb(input: Buffer, records: string[][]): Promise<void> {
    const [header, ...rows] = records;
    // It guesses about rows of other lengths, and about lines with nothing in them.
    const text = input.toString('utf8');
    if (
      rows.length === 0 ||
      rows.some((row) => row.length !== header!.length || row.every((value) => value.trim() === ''))
    )
      return;
    if (/\r(?!\n)|[\0\uFEFF]|^\r?\n|\n\r?\n/.test(text) || (text.includes('\r') && /[^\r]\n/.test(text)))
      return;
    await writeFile(file, input);
    const delimiter = delimiterOf(text);
    const reader = await connection.runAndReadAll(
      `SELECT * FROM read_csv('${file}', header = false, skip = 0, all_varchar = true, auto_detect = false, delim = '${delimiter}', quote = '"', escape = '"', strict_mode = true, columns = {${header!.map((_, index) => `'c${index}': 'VARCHAR'`).join(', ')}})`,
    );
    const found = reader.getRowsJson().map((row) => row.map((value) => value ?? ''));
    mustEqual(records, found, 'DuckDB');
  }
}

async function rowsOf(
  input: Buffer,
  pieceBytes: number,
  at: unknown,
): Promise<{ rows: RawRow[]; broken: string | null }> {
  const rows: RawRow[] = [];
  const reader = openCsvReader(memoryFiles(input, pieceBytes), {});
  try {
    for await (const row of reader.rows('table.csv', at)) rows.push(row);
  } catch (error) {
    if (!(error instanceof BrokenFileError)) throw error;
    return { rows, broken: error.message };
  }
  return { rows, broken: null };
}

/** As the first line has it outside of quotes: a comma, unless it has none but the others. */
function delimiterOf(text: string): string {
  const line = text
    .trimStart()
    .replace(/(^|[,;\t\r\n])"(?:[^"]|"")*"/g, '$1')
    .split('\n', 1)[0]!;
  return [',', '\t', ';'].find((mark) => line.includes(mark)) ?? ',';
}

/** The cells of a table by RFC 4180, with any delimiter; null for one with a mistake in it. */
function recordsOf(input: Buffer): string[][] | null {
  const text = input.toString('utf8');
  if (
    !Buffer.from(text).equals(input) ||
    /[\0]|\r(?!\n)/.test(text) ||
    (input[0] === 0x1f && input[1] === 0x8b)
  )
    return null;
  const content = text.replace(/^\uFEFF/, '');
  const delimiter = delimiterOf(text);
  const records: string[][] = [];
  let record: string[] = [];
  let at = 0;
  while (at < content.length) {
    if (record.length === 0 && /[\r\n]/.test(content[at]!)) {
      at++;
      continue;
    }
    const quoted = /"((?:[^"]|"")*)"/y;
    const plain = /[^"\r\n,;\t]*/y;
    quoted.lastIndex = plain.lastIndex = at;
    const isQuoted = content[at] === '"';
    const found = isQuoted ? quoted.exec(content) : plain.exec(content);
    if (found === null) return null;
    at += found[0].length;
    let value = isQuoted ? found[1]!.replaceAll('""', '"') : found[0];
    if (!isQuoted)
      for (; at < content.length && /[,;\t]/.test(content[at]!) && content[at] !== delimiter; ) {
        value += content[at++];
        plain.lastIndex = at;
        const more = plain.exec(content)![0];
        value += more;
        at += more.length;
      }
    record.push(value);
    if (content[at] === delimiter) {
      at++;
      if (at < content.length) continue;
      record.push('');
    } else if (at < content.length && !/[\r\n]/.test(content[at]!)) return null;
    const lineEnd = /\r?\n/y;
    lineEnd.lastIndex = at;
    at += lineEnd.exec(content)?.[0].length ?? 0;
    records.push(record);
    record = [];
  }
  return records;
}

function expectedRows([header = [], ...records]: string[][]): unknown[] {
  const urlAt = header.indexOf('url');
  return records.map((record) => {
    const url = record[urlAt];
    if (url === undefined || url.trim() === '') return { reason: "no text in column 'url'" };
    const names = [...new Set(header)].filter((name) => name !== 'url');
    const meta = names.map((name): [string, string | null] => [name, record[header.indexOf(name)] ?? null]);
    return { url, meta: meta.length === 0 ? null : Object.fromEntries(meta) };
  });
}
