import { describe, expect, test } from 'vitest';
import { judgeQuality } from '../../src/coordinator/reports/quality.ts';
import type { Report } from '../../src/core/batch/batch.ts';
import type { QualityDelta } from '../../src/core/batch/outcome.ts';
import { checkReport } from '../../src/core/batch/report.ts';
import { SeineError } from '../../src/core/errors.ts';
import { contentTypeOf } from '../../src/core/media/content-type.ts';
import { parseDate } from '../../src/core/sitemap/dates.ts';
import { makeAddressGuard } from '../../src/core/url/address-guard.ts';
import { canonicalJson } from '../../src/core/values/canonical-json.ts';
import { getOwn, setOwn } from '../../src/core/values/own-property.ts';
import { planTab } from '../../src/fetch/browser/page/plan-tab.ts';
import { parseJob } from '../../src/job-file/parse-job.ts';
import { mapCells, mapObject } from '../../src/sources/rows/map-row.ts';
import { QualitySum } from '../../src/worker/batch/report-parts.ts';
import { headerOf } from '../../src/worker/page/page.ts';
import { parseHtml } from '../../src/worker/page/parse-html.ts';
import { TreeSearch } from '../../src/worker/page/tree-search.ts';
import { objectOf } from '../../src/worker/records/extract.ts';
import { LinkedData } from '../../src/worker/records/json-ld.ts';
import { compileJsonSchema } from '../../src/worker/records/record-schema.ts';
import { countFilled, mergeEqualKeys, toDrafts } from '../../src/worker/records/record-steps.ts';
import { openBatchCookies } from '../../src/worker/request/cookies.ts';
import { HOSTILE_NAMES, objectWith } from '../support/hostile-names.ts';

const names = HOSTILE_NAMES.toSorted();
const namesOf = (object: object) => Object.keys(object).sort();

describe.each(
  HOSTILE_NAMES.map((name) => [name.length > 50 ? 'a very long name' : JSON.stringify(name), name]),
)('a name that comes from outside: %s', (_, name) => {
  test('of a field is counted like any other', () => {
    const records = [objectWith('x', [name]), objectWith(null, [name]), objectWith('y', [name])];
    const filled = countFilled(records);
    expect(Object.entries(filled)).toEqual([[name, 2]]);
    const sum = new QualitySum();
    for (let i = 0; i < 2; i++) sum.add({ route: 'r', records: 3, invalid: 0, filled });
    const [delta] = sum.take();
    expect(Object.entries(delta!.filled)).toEqual([[name, 4]]);
    // Through a thread, and through Redis.
    for (const copy of [structuredClone(delta!), JSON.parse(JSON.stringify(delta)) as QualityDelta])
      expect(Object.entries(copy.filled)).toEqual([[name, 4]]);
    const [judged] = judgeQuality([{ pass: 1, ...delta! }], []);
    expect(judged!.score).toBe(67);
    expect(Object.entries(judged!.fields)).toEqual([[name, 0.667]]);
  });

  test('of a field that a record has no more is a drop', () => {
    const row = { pass: 1, route: 'r', records: 30, invalid: 0 };
    const [judged] = judgeQuality([{ ...row, filled: {} }], [{ ...row, filled: objectWith(30, [name]) }]);
    expect(judged!.score).toBe(0);
    expect(judged!.drops).toEqual([{ field: name, before: 1, now: 0 }]);
  });

  test('of a field is part of what a record is hashed over', () => {
    const hashOf = (value: string) =>
      toDrafts([{ key: 'k', data: { ...objectWith(value, [name]), a: '1', '!': '2' } }], false)[0]!.hash;
    expect(hashOf('one')).not.toBe(hashOf('two'));
    expect(canonicalJson({ ...objectWith('one', [name]), '!': 1 })).toContain('one');
  });

  test('of a selected field is a field', () => {
    const member = { name, path: name, required: false, read: () => ['value'] };
    const record = objectOf([member], {} as never, null)!;
    expect(Object.entries(record)).toEqual([[name, ['value']]]);
    expect(Object.getPrototypeOf(record)).toBe(Object.prototype);
  });

  test('of a column or a property travels with the task', () => {
    const { names: needed, map } = mapCells(['url', name], {});
    const cells = ['https://h.example/', 'value'];
    const row = map((index) => cells[['url', name].indexOf(needed[index]!)]);
    const other = mapObject({})({ url: 'https://h.example/', ...objectWith('value', [name]) });
    for (const task of [row, other] as { meta: object }[])
      expect(Object.entries(task.meta)).toEqual([[name, 'value']]);
  });

  test('is not found where nothing has it', () => {
    expect(getOwn({}, name)).toBeUndefined();
    expect(contentTypeOf(`media/${name}.${name}`)).toBeNull();
    expect([...new LinkedData(['{"@type":"T"}']).valuesAt({ type: 'T', steps: [name] })]).toEqual([]);
    expect(parseDate(`Mon, 02 Jan 2006 15:04:05 ${name}`)?.constructor).not.toBe(String);
  });

  test('of a property in a JSON Schema is one of the record alone', async () => {
    // Ajv knows no names with half a character, and no job has `__proto__` in it.
    const asked = name.isWellFormed() && name !== '__proto__' ? name : 'constructor';
    const schema = { type: 'object', properties: objectWith({ type: 'string' }, [asked]) };
    const check = await compileJsonSchema(schema, 'r');
    expect(check({ other: 1 })).toEqual({ other: 1 });
    expect(() => check(objectWith(1, [asked]))).toThrow(/must be string/);
    // Nor does it miss what has no name.
    if (asked === '') return;
    const demand = await compileJsonSchema({ type: 'object', required: [asked] }, 'r');
    expect(() => demand({ other: 1 })).toThrow(/must have required property/);
    expect(demand(objectWith(1, [asked]))).toEqual(objectWith(1, [asked]));
  });

  test('of an attribute is found where an element has it', () => {
    const search = new TreeSearch();
    const document = parseHtml('<p>none</p>');
    const isName = /^[a-z_]+$/i.test(name);
    for (const css of isName ? [`[${name}]`, `[${name}^="f"]`, `[${name}*=native]`] : [])
      expect(search.all(search.compile(css, false), document)).toEqual([]);
  });

  test('of a header, cookie or host is data', async () => {
    const cookies = await openBatchCookies([]);
    const safe = encodeURIComponent(name.slice(0, 100).toWellFormed());
    cookies.take('https://h.example/', null, ['Set-Cookie', `${safe}=x`, name, name]);
    const [jar] = cookies.takeChanges();
    if (safe !== '') expect(jar?.cookies).toMatchObject([{ name: safe, value: 'x' }]);
    expect(cookies.headerFor('https://h.example/', `of ${name}`)).toBeNull();
    expect(headerOf([name, 'x'], name)).toBe('x');
    expect(headerOf([], name)).toBeNull();
  });

  test('of a failure ends nothing', () => {
    const outcome = { kind: 'failed', taskId: 1, code: name, detail: 'd', page: null, trace: null };
    const { report, problems } = checkReport({ quality: [], robots: [], outcomes: [outcome] } as never);
    expect(report.outcomes[0]).toMatchObject({ kind: 'failed', taskId: 1, code: 'internal' });
    expect(problems).toHaveLength(1);
  });
});

describe('names in a job', () => {
  const problemOf = (job: object) =>
    parseJob({ sources: 'https://a.example/', ...job }, 'job', 'x').then(
      () => null,
      (error: unknown) => error,
    );

  test.each<[string, object]>([
    ['fields', { routes: [{ name: 'r', select: objectWith('h1', ['__proto__']) }] }],
    [
      'fields of fields',
      { routes: [{ name: 'r', select: { a: { css: 'p', fields: objectWith('b', ['__proto__']) } } }] },
    ],
    ['headers', { identity: { headers: objectWith('x', ['__proto__']) } }],
    [
      'columns',
      { sources: [{ file: 'a.csv', columns: objectWith('r', ['__proto__']) }], routes: [{ name: 'r' }] },
    ],
    ['hosts', { politeness: { hosts: objectWith({ rate: 1 }, ['__proto__']) } }],
    ['the job', objectWith(1, ['__proto__'])],
  ])('__proto__ is refused, not lost: in %s', async (_, job) => {
    const error = await problemOf(job);
    expect(error).toBeInstanceOf(SeineError);
    expect(String(error)).toMatch(/__proto__/);
  });

  test.each(['', ' ', 'a b', 'a\0b', 'a:b', 'é', '\ud800', 'a\r\nb'])(
    '%j is no name of a header',
    async (name) => {
      for (const identity of [
        { headers: { [name]: 'x' } },
        { headers: { 'X-Good': `x${name}\n` } },
        { secretHeaders: { 'https://a.example': { [name]: { env: 'X' } } } },
      ]) {
        const error = await problemOf({ identity });
        expect(error).toBeInstanceOf(SeineError);
        expect(String(error)).toMatch(/header/i);
      }
    },
  );

  test('a job that lies in itself without end is refused in a sentence', async () => {
    let fields: unknown = 'h1';
    for (let depth = 0; depth < 20_000; depth++) fields = { css: 'a', fields: { a: fields } };
    const error = await problemOf({ routes: [{ name: 'r', select: { a: fields } }] });
    expect(error).toBeInstanceOf(SeineError);
    expect(String(error)).toMatch(/nested/);
  });

  test('a device that is none', () => {
    for (const device of ['constructor', '__proto__', 'toString'])
      expect(
        planTab(
          { headers: {}, render: { device } } as never,
          {},
          { userAgent: 'x', guard: makeAddressGuard(() => true, false) },
        ),
      ).toBe('Playwright has no device of this name');
  });
});

test('all of them together', () => {
  const record = objectWith('x');
  expect(namesOf(countFilled([record]))).toEqual(names);
  const merged = mergeEqualKeys([
    { key: 'k', data: record },
    { key: 'k', data: objectWith('y') },
  ]);
  expect(merged).toHaveLength(1);
  expect(namesOf(merged[0]!.data)).toEqual(names);
  expect(new Set(Object.values(merged[0]!.data))).toEqual(new Set(['y']));
  const target = {};
  for (const name of HOSTILE_NAMES) setOwn(target, name, 1);
  expect(namesOf(target)).toEqual(names);
});

test('quality figures that are none are left out of a report, and told', () => {
  const good = { route: 'r', records: 1, invalid: 0, filled: objectWith(1) };
  const bad: unknown[] = [
    null,
    'text',
    { ...good, route: 7 },
    { ...good, route: 'a\0b' },
    { ...good, records: Number.NaN },
    { ...good, records: -1 },
    { ...good, invalid: 0.5 },
    { ...good, filled: null },
    { ...good, filled: objectWith('function Object() { [native code] }1') },
    { ...good, filled: { a: null } },
  ];
  const { report, problems } = checkReport({ quality: [good, ...bad] } as Report);
  expect(report.quality).toEqual([good]);
  expect(problems).toEqual([`ignored ${bad.length} quality figures that are not valid`]);
  for (const quality of [undefined, null, {}, 'x'])
    expect(checkReport({ quality } as Report)).toMatchObject({ report: { quality: [] } });
});
