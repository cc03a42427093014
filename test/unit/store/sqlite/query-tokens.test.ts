import { describe, expect, test } from 'vitest';
import { refuseNames } from '../../../../src/store/sqlite/views/query-guard.ts';
import { isOneSelect, readTokens } from '../../../../src/store/sqlite/views/query-tokens.ts';

test('words are read as SQLite reads them, in every way of quoting', () => {
  expect(
    readTokens(
      `SELECT a, "b""c", [d e], \`f\`, 'it''s' -- no\n FROM main.tasks /* nor this */ WHERE Größe$1 = 5`,
    ),
  ).toEqual([...['SELECT', 'a', 'b"c', 'd e', 'f', "it's", 'FROM', 'main', 'tasks', 'WHERE', 'Größe$1']]);
});

describe('without an authorizer', () => {
  const names = new Set(['escalations', 'jobs']);
  test.each([
    'SELECT * FROM escalations',
    'SELECT * FROM EscaLations',
    'SELECT * FROM "escalations"',
    "SELECT * FROM 'escalations'",
    'SELECT * FROM [escalations]',
    'SELECT * FROM `escalations`',
    'SELECT * FROM main.escalations',
    'SELECT * FROM main./**/"escalations"',
    'SELECT * FROM seine_tasks,escalations',
    'WITH seine_tasks AS (SELECT * FROM jobs) SELECT * FROM seine_tasks',
    'SELECT * FROM sqlite_schema',
    "SELECT * FROM pragma_table_info('x')",
    'SELECT * FROM "dbstat"',
    "SELECT load_extension('x')",
  ])('a query that names a table is refused: %s', (sql) => {
    expect(() => refuseNames(sql, names)).toThrow(/is prohibited/);
  });

  test.each([
    "SELECT url FROM seine_tasks WHERE job = 'shop' AND url LIKE '%escalations%' -- escalations",
    'SELECT url, jobs_done FROM (SELECT url, 1 AS jobs_done FROM seine_records)',
  ])('others are not: %s', (sql) => {
    expect(() => refuseNames(sql, names)).not.toThrow();
  });
});

test.each([
  ['SELECT 1', true],
  ["with a as (select ';') select * from a;", true],
  ['/* ; */ SELECT 1 -- ; \n ;', true],
  ['SELECT 1; SELECT 2', false],
  ["SELECT 'a''; b'; DELETE FROM x", false],
  ['DELETE FROM x', false],
  ['EXPLAIN SELECT 1', false],
  ['', false],
])('%s is one SELECT: %s', (sql, is) => {
  expect(isOneSelect(sql)).toBe(is);
});
