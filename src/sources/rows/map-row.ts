import { messageOf, SeineError } from '../../core/errors.ts';
import type { FileSourceSpec } from '../../core/job-schema/job.ts';
import { TASK_PRIORITY_MAX } from '../../core/job-schema/source.ts';
import type { Meta } from '../../core/model.ts';
import { setOwn } from '../../core/values/own-property.ts';
import type { SourceTask } from '../../ports/source.ts';
import { BrokenFileError, type RawRow } from './raw-row.ts';

/** Name columns that say how a row is to be fetched. */
const RULE_FIELDS = ['routeColumn', 'priorityColumn', 'poolColumn', 'countryColumn'] as const;
type RuleField = (typeof RULE_FIELDS)[number];

/** Which columns of a row are URLs, and which become metadata of its tasks. */
export type ColumnSpec = Pick<FileSourceSpec, 'urlColumn' | 'columns' | 'meta' | 'route' | RuleField>;

/** Tried in this order when the source names no column. */
const URL_COLUMNS = ['url', 'page_url', 'image_url', 'link'];

interface UrlColumn {
  name: string;
  route?: string;
}

/** Tables say once what their columns are called. */
export interface CellMapper {
  /** The columns that are needed at all. */
  names: string[];
  /** `cell` gives the value of a column by its index in `names`. */
  map(cell: (index: number) => unknown): RawRow['row'];
}

/** Throws a SeineError when a column that the source names is missing. */
export function checkColumns(names: readonly string[], spec: ColumnSpec): void {
  urlColumnsOf(names, spec);
  const unknown = spec.meta?.find((name) => !names.includes(name));
  if (unknown !== undefined) throw missingColumn(unknown, names, 'correct `meta`');
  for (const field of RULE_FIELDS) {
    const name = spec[field];
    if (name !== undefined && !names.includes(name)) throw missingColumn(name, names, `correct \`${field}\``);
  }
}

/** One file of many without the URLs is broken; without a column of metadata it is not. */
export function mapCells(names: readonly string[], spec: ColumnSpec): CellMapper {
  let urls: UrlColumn[];
  try {
    urls = urlColumnsOf(names, spec);
  } catch (error) {
    throw new BrokenFileError(messageOf(error), { cause: error });
  }
  const single = urls.length === 1 ? urls[0]!.name : null;
  const metaNames = spec.meta
    ? names.filter((name) => spec.meta!.includes(name))
    : names.filter((name) => name !== single && !isRule(name, spec));
  const ruleNames = names.filter((name) => isRule(name, spec));
  const needed = [...new Set([...urls.map(({ name }) => name), ...metaNames, ...ruleNames])];
  const indexes = new Map(needed.map((name, index) => [name, index]));
  const urlCells = urls.map((column) => ({ ...column, index: indexes.get(column.name)! }));
  const metaCells = metaNames.map((name) => ({ name, index: indexes.get(name)! }));
  const explicit = spec.meta !== undefined;
  return {
    names: needed,
    map(cell) {
      const rules = readRules(spec, (name) => (indexes.has(name) ? cell(indexes.get(name)!) : null));
      if ('reason' in rules) return rules;
      const tasks: SourceTask[] = [];
      for (const { name, index, route } of urlCells) {
        const url = cell(index);
        if (typeof url !== 'string' || url.trim() === '') continue;
        const meta: Meta = {};
        for (const other of metaCells)
          if (explicit || other.name !== name) setOwn(meta, other.name, cell(other.index) ?? null);
        tasks.push({ ...taskOf(url, meta, route), ...rules });
      }
      return oneOrMore(tasks, urls, 'column');
    },
  };
}

/** Objects each say for themselves what they have. */
export function mapObject(spec: ColumnSpec): (value: Record<string, unknown>) => RawRow['row'] {
  const asked = askedColumns(spec);
  const kept = spec.meta && new Set(spec.meta);
  return (value) => {
    const columns = asked ?? [
      { name: guessColumn(Object.keys(value)) ?? URL_COLUMNS[0]!, route: spec.route },
    ];
    const rules = readRules(spec, (name) => (Object.hasOwn(value, name) ? value[name] : null));
    if ('reason' in rules) return rules;
    const tasks: SourceTask[] = [];
    for (const { name, route } of columns) {
      const url = Object.hasOwn(value, name) ? value[name] : undefined;
      if (typeof url !== 'string' || url.trim() === '') continue;
      const meta: Meta = {};
      for (const [key, other] of Object.entries(value))
        if (kept ? kept.has(key) : key !== name && !isRule(key, spec)) setOwn(meta, key, other);
      tasks.push({ ...taskOf(url, meta, route), ...rules });
    }
    return oneOrMore(tasks, columns, 'property');
  };
}

function isRule(name: string, spec: ColumnSpec): boolean {
  return RULE_FIELDS.some((field) => spec[field] === name);
}

/** What a row says of how it is to be fetched; empty cells say nothing. */
function readRules(
  spec: ColumnSpec,
  cell: (name: string) => unknown,
): Pick<SourceTask, 'route' | 'priority' | 'proxy'> | { reason: string } {
  const textOf = (field: RuleField) => {
    const name = spec[field];
    return name === undefined ? '' : String(cell(name) ?? '').trim();
  };
  const rules: Pick<SourceTask, 'route' | 'priority' | 'proxy'> = {};
  const route = textOf('routeColumn');
  if (route !== '') rules.route = route;
  const [pool, country] = [textOf('poolColumn'), textOf('countryColumn').toUpperCase()];
  if (pool !== '' || country !== '')
    rules.proxy = { ...(pool === '' ? {} : { pool }), ...(country === '' ? {} : { country }) };
  const text = textOf('priorityColumn');
  if (text === '') return rules;
  const priority = Number(text);
  if (!Number.isInteger(priority) || Math.abs(priority) > TASK_PRIORITY_MAX)
    return {
      reason: `the priority must be a whole number from -${TASK_PRIORITY_MAX} to ${TASK_PRIORITY_MAX}, got '${text.slice(0, 40)}'`,
    };
  return { ...rules, priority };
}

export function taskOf(url: string, meta: Meta, route: string | undefined): SourceTask {
  const task: SourceTask = { url, meta: Object.keys(meta).length > 0 ? meta : null };
  if (route !== undefined) task.route = route;
  return task;
}

/** A row with several URL columns need not have all of them. */
function oneOrMore(tasks: SourceTask[], columns: UrlColumn[], kind: string): RawRow['row'] {
  if (tasks.length > 1) return tasks;
  return tasks[0] ?? { reason: `no text in ${kind} ${columns.map(({ name }) => `'${name}'`).join(' or ')}` };
}

function askedColumns(spec: ColumnSpec): UrlColumn[] | null {
  if (spec.columns) return Object.entries(spec.columns).map(([name, route]) => ({ name, route }));
  return spec.urlColumn === undefined ? null : [{ name: spec.urlColumn, route: spec.route }];
}

function urlColumnsOf(names: readonly string[], spec: ColumnSpec): UrlColumn[] {
  const asked = askedColumns(spec);
  if (!asked) {
    const name = guessColumn(names);
    if (name === null)
      throw missingColumn(URL_COLUMNS.join("', '"), names, 'set it with --url-column or `urlColumn`');
    return [{ name, route: spec.route }];
  }
  const absent = asked.find(({ name }) => !names.includes(name));
  if (absent) throw missingColumn(absent.name, names, 'set it with --url-column, `urlColumn` or `columns`');
  return asked;
}

/** As written first; then in any case: many tables have `URL`. */
function guessColumn(names: readonly string[]): string | null {
  const exact = URL_COLUMNS.find((name) => names.includes(name));
  if (exact !== undefined) return exact;
  const lower = names.map((name) => name.toLowerCase());
  const index = URL_COLUMNS.map((name) => lower.indexOf(name)).find((found) => found >= 0);
  return index === undefined ? null : names[index]!;
}

function missingColumn(name: string, names: readonly string[], hint: string): SeineError {
  const shown = names.slice(0, 30).join(', ') + (names.length > 30 ? ', …' : '');
  return new SeineError(`no column '${name}' among: ${shown.slice(0, 500)}`, { hint });
}
