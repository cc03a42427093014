import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { FieldInput } from '../../../src/core/job-schema/job.ts';
import { parseDate } from '../../../src/core/values/parse-date.ts';
import { parseMoney } from '../../../src/core/values/parse-money.ts';
import { parseNumber, TYPED_TEXT_MAX } from '../../../src/core/values/parse-number.ts';
import { CODE_NAMES } from '../../../src/worker/job/route-code.ts';
import { TREE_STEPS_MAX, VALUES_PER_FIELD_MAX } from '../../../src/worker/page/tree-search.ts';
import { REGEX_TEXT_MAX } from '../../../src/worker/records/linear-regex.ts';
import { read, rowsOf } from '../../support/docs/docs-text.ts';
import { fieldsOf, pageOf } from '../../support/html/html-page.ts';

/** Every line of the tables of docs/extraction.md is tried. */

const TEXT = read('docs/extraction.md');
const PAGE = /```html\n([\s\S]*?)```/.exec(TEXT)![1]!;

/** The rows below a table's head, without the backticks of the cells. */
function rowsBelow(head: string): string[][] {
  const [, table] = TEXT.split(`\n${head}\n`);
  const rows = rowsOf(table!.split('\n\n')[0]!);
  return rows.map((cells) => cells.map((cell) => cell.replace(/^`|`$/g, '')));
}

const FIELDS = rowsBelow('| a field | is |');

test('there is something to try', () => {
  expect(FIELDS.length).toBeGreaterThan(15);
  for (const name of ['number', 'money', 'date'])
    expect(rowsBelow(`| ${name} | is |`).length).toBeGreaterThan(9);
});

test.each(FIELDS)('the field %s is %s', async (field, value) => {
  const extract = await fieldsOf({ it: parse(field!) as FieldInput, always: 'h1' });
  expect(extract(pageOf(PAGE))!.it).toEqual(JSON.parse(value!));
});

describe('types', () => {
  test.each(rowsBelow('| number | is |'))('number: %s is %s', (text, value) =>
    expect(parseNumber(text!)).toEqual(JSON.parse(value!)),
  );
  test.each(rowsBelow('| money | is |'))('money: %s is %s', (text, value) =>
    expect(parseMoney(text!)).toEqual(JSON.parse(value!)),
  );
  test.each(rowsBelow('| date | is |'))('date: %s is %s', (text, value) =>
    expect(parseDate(text!)).toEqual(JSON.parse(value!)),
  );
});

test('every function of a route is in the table, and the limits are those of the code', () => {
  const names = rowsBelow('| in a route | gets | gives |').map(([name]) => name);
  expect(names.filter((name) => name !== 'schema')).toEqual([...CODE_NAMES]);
  const words = TEXT.replace(/\s+/g, ' ');
  for (const [shown, limit] of [
    ['10,000 values', VALUES_PER_FIELD_MAX],
    ['50,000,000 steps', TREE_STEPS_MAX],
    ['longer than 1,000 characters', TYPED_TEXT_MAX],
    ['first 2,000,000 characters', REGEX_TEXT_MAX],
  ] as const) {
    expect(words).toContain(shown);
    expect(Number(/[\d,]+/.exec(shown)![0].replaceAll(',', ''))).toBe(limit);
  }
});
