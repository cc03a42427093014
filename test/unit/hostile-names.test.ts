import { describe, expect, test } from 'vitest';
import { judgeQuality } from '../../src/coordinator/reports/quality.ts';
import type { Report } from '../../src/core/batch/batch.ts';
import type { QualityDelta } from '../../src/core/batch/outcome.ts';
import { checkReport } from '../../src/core/batch/report.ts';
import { contentTypeOf } from '../../src/core/media/content-type.ts';
import { parseDate } from '../../src/core/sitemap/dates.ts';
import { canonicalJson } from '../../src/core/values/canonical-json.ts';
import { getOwn, setOwn } from '../../src/core/values/own-property.ts';
import { mapCells, mapObject } from '../../src/sources/rows/map-row.ts';
import { QualitySum } from '../../src/worker/batch/report-parts.ts';
import { objectOf } from '../../src/worker/records/extract.ts';
import { LinkedData } from '../../src/worker/records/json-ld.ts';
import { countFilled, mergeEqualKeys, toDrafts } from '../../src/worker/records/record-steps.ts';
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

  test('of a failure ends nothing', () => {
    const outcome = { kind: 'failed', taskId: 1, code: name, detail: 'd', page: null, trace: null };
    const { report, problems } = checkReport({ quality: [], robots: [], outcomes: [outcome] } as never);
    expect(report.outcomes[0]).toMatchObject({ kind: 'failed', taskId: 1, code: 'internal' });
    expect(problems).toHaveLength(1);
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
  const { report, problems } = checkReport({ quality: [good, ...bad] } as unknown as Report);
  expect(report.quality).toEqual([good]);
  expect(problems).toEqual([`ignored ${bad.length} quality figures that are not valid`]);
  for (const quality of [undefined, null, {}, 'x'])
    expect(checkReport({ quality } as unknown as Report)).toMatchObject({ report: { quality: [] } });
});
