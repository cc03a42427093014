import { z } from 'zod';
import { suggestion } from '../core/text/nearest-name.ts';
import { getOwn } from '../core/values/own-property.ts';

/** One thing that is wrong with a job, and where. */
export interface JobProblem {
  /** Of the value, or of the name that is unknown. */
  path: PropertyKey[];
  /** Whether the path ends with a name that should not be there. */
  isName: boolean;
  message: string;
}

type Schema = z.core.$ZodType;
type Issue = z.core.$ZodIssue;

/** What a schema refuses in a job, in sentences that say what would be right. */
export function problemsOf(error: z.ZodError, schema: Schema, job: unknown): JobProblem[] {
  return error.issues.flatMap((issue) => problemsOfIssue(issue, schema, job));
}

/** `route 'product': select.title`, rather than the number of the route. */
export function placeName(path: readonly PropertyKey[], job: unknown): string {
  const [first, index, ...rest] = path;
  if (first !== 'routes' || typeof index !== 'number') return path.map(String).join('.');
  const name = valueAt(job, ['routes', index, 'name']);
  const route = typeof name === 'string' && rest[0] !== 'name' ? `route '${name}'` : `routes.${index}`;
  return rest.length === 0 ? route : `${route}: ${rest.map(String).join('.')}`;
}

function problemsOfIssue(issue: Issue, schema: Schema, job: unknown): JobProblem[] {
  const { path } = issue;
  const value = valueAt(job, path);
  const problem = (message: string): JobProblem => ({ path, isName: false, message });
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = fieldsOf(schemasAt([schema], path));
      return issue.keys.map((key) => ({
        path: [...path, key],
        isName: true,
        message: `unknown field${suggestion(key, known) || elsewhereText(key, schema, path) || knownText(known)}`,
      }));
    }
    case 'invalid_union': {
      const only = likeliestOf(issue, value);
      if (only)
        return only.flatMap((inner) =>
          problemsOfIssue({ ...inner, path: [...path, ...inner.path] }, schema, job),
        );
      return [problem(expected(schemasAt([schema], path), value))];
    }
    case 'invalid_type':
    case 'invalid_value':
      if (value === undefined && path.length > 0) return [problem('is missing')];
      return [problem(expected(schemasAt([schema], path), value))];
    case 'too_small':
    case 'too_big':
      return [problem(ofSize(issue, value))];
    case 'invalid_format':
      return [problem(/^Invalid/.test(issue.message) ? `${shown(value)} is not valid here` : issue.message)];
    default:
      return [problem(issue.message)];
  }
}

/** A field of routes that is written at the job, or the other way round. */
function elsewhereText(key: string, schema: Schema, path: readonly PropertyKey[]): string {
  if (path.length === 0 && fieldsOf(schemasAt([schema], ['routes', 0])).includes(key))
    return '; it belongs into a route';
  if (path[0] === 'routes' && path.length === 2 && fieldsOf(schemasAt([schema], [])).includes(key))
    return '; it belongs to the job, not into a route';
  return '';
}

/** Most kinds of fields have fewer than this; the others are in the docs. */
const FIELDS_SHOWN_MAX = 12;

function knownText(known: readonly string[]): string {
  return known.length > 0 && known.length <= FIELDS_SHOWN_MAX ? `; known here: ${known.join(', ')}` : '';
}

/** What is wrong with a value of several possible kinds, taken as the kind that it looks like, where that is clear. */
function likeliestOf(issue: Extract<Issue, { code: 'invalid_union' }>, value: unknown): Issue[] | null {
  const kinds = issue.errors.filter((kind) => !kind.some(isOfAnotherKind));
  if (kinds.length <= 1) return kinds[0] ?? null;
  if (typeof value !== 'object' || value === null) return null;
  // Of several kinds of objects, the one with least wrong in it; of those alike, the one that knows most of its fields.
  const [best, next] = kinds
    .map((kind) => ({ kind, wrong: sumOf(kind, weightOf), unknown: sumOf(kind, unknownOf) }))
    .sort((a, b) => a.wrong - b.wrong || a.unknown - b.unknown);
  return best!.wrong < next!.wrong || best!.unknown < next!.unknown ? best!.kind : null;
}

function sumOf(issues: readonly Issue[], weigh: (issue: Issue) => number): number {
  return issues.reduce((sum, issue) => sum + weigh(issue), 0);
}

function unknownOf(issue: Issue): number {
  return issue.code === 'unrecognized_keys' ? issue.keys.length : 0;
}

/** Whether the value as a whole is of another kind, as a list is where a text or an object may stand. */
function isOfAnotherKind(issue: Issue): boolean {
  if (issue.path.length > 0) return false;
  if (issue.code === 'invalid_union')
    return issue.errors.length > 0 && issue.errors.every((kind) => kind.some(isOfAnotherKind));
  return issue.code === 'invalid_type' || issue.code === 'invalid_value';
}

function weightOf(issue: Issue): number {
  return issue.code === 'unrecognized_keys' ? issue.keys.length : 1;
}

function ofSize(issue: Extract<Issue, { code: 'too_small' | 'too_big' }>, value: unknown): string {
  const isSmall = issue.code === 'too_small';
  const limit = isSmall ? issue.minimum : issue.maximum;
  const bound = issue.inclusive ? (isSmall ? 'at least' : 'at most') : isSmall ? 'more than' : 'less than';
  if (typeof value === 'number') return `must be ${bound} ${limit}, got ${value}`;
  const isOne = Number(limit) === 1;
  if (isSmall && isOne) return Array.isArray(value) ? 'the list is empty' : 'the text is empty';
  const unit = Array.isArray(value) ? (isOne ? 'item' : 'items') : isOne ? 'character' : 'characters';
  return `must have ${bound} ${limit} ${unit}`;
}

function expected(schemas: readonly Schema[], value: unknown): string {
  const missing = typeof value === 'object' && value !== null ? missingOf(schemas, Object.keys(value)) : null;
  if (missing) return missing;
  const kinds = [...new Set(schemas.flatMap(kindsOf))];
  const words = kinds.flatMap((kind) => (kind.startsWith('"') ? [kind.slice(1, -1)] : []));
  const near = typeof value === 'string' ? suggestion(value, words) : '';
  return `expected ${listed(kinds)}, got ${shown(value)}${near}`;
}

/** Of an object that may be of several kinds and has none of the fields that tell which. */
function missingOf(schemas: readonly Schema[], names: readonly string[]): string | null {
  const needed = schemas.flatMap((schema) => requiredFieldsOf(schema).slice(0, 1));
  if (needed.length < 2 || names.some((name) => needed.includes(name))) return null;
  const near = names.map((name) => suggestion(name, needed)).find((text) => text !== '');
  const text = schemas.some((schema) => kindsOf(schema).includes('a text')) ? 'a text, or ' : '';
  const got = names.length > 0 ? `one with ${names.join(', ')}` : 'an empty one';
  return `expected ${text}an object with ${listed(needed)}, got ${got}${near ?? ''}`;
}

function requiredFieldsOf(schema: Schema): string[] {
  const def = (schema as z.core.$ZodTypes)._zod.def;
  if (def.type !== 'object') return [];
  return Object.entries(def.shape as Record<string, Schema>).flatMap(([name, field]) =>
    (field as z.core.$ZodTypes)._zod.optin === 'optional' ? [] : [name],
  );
}

function listed(kinds: readonly string[]): string {
  if (kinds.length < 2) return kinds[0] ?? 'something else';
  return `${kinds.slice(0, -1).join(', ')} or ${kinds.at(-1)}`;
}

const SHOWN_LENGTH_MAX = 60;

function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  if (typeof value === 'function') return 'a function';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
}

/** The parts of a schema that its wrappers (defaults, transforms, unions) hide. */
function unwrapped(schema: Schema): Schema[] {
  const def = (schema as z.core.$ZodTypes)._zod.def;
  switch (def.type) {
    case 'optional':
    case 'default':
    case 'prefault':
      return unwrapped(def.innerType);
    case 'nullable':
      return [...unwrapped(def.innerType), z.null()];
    case 'pipe':
      return unwrapped(def.in);
    case 'lazy':
      return unwrapped(def.getter());
    case 'union':
      return def.options.flatMap(unwrapped);
    default:
      return [schema];
  }
}

function kindsOf(schema: Schema): string[] {
  return unwrapped(schema).flatMap((inner): string[] => {
    const def = (inner as z.core.$ZodTypes)._zod.def;
    switch (def.type) {
      case 'string':
        return ['a text'];
      case 'number':
        return [def.checks?.length && isWhole(inner) ? 'a whole number' : 'a number'];
      case 'boolean':
        return ['true', 'false'];
      case 'null':
        return ['null'];
      case 'literal':
        return def.values.map((value) => JSON.stringify(value));
      case 'enum':
        return Object.values(def.entries).map((value) => JSON.stringify(value));
      case 'array':
        return ['a list'];
      default:
        return ['an object'];
    }
  });
}

function isWhole(schema: Schema): boolean {
  return (schema as { isInt?: boolean }).isInt === true;
}

/** What may stand at a path. */
function schemasAt(schemas: readonly Schema[], path: readonly PropertyKey[]): Schema[] {
  let level = schemas.flatMap(unwrapped);
  for (const step of path)
    level = level.flatMap((schema): Schema[] => {
      const def = (schema as z.core.$ZodTypes)._zod.def;
      if (def.type === 'object') {
        const field = getOwn(def.shape as Record<string, Schema>, String(step));
        return field ? unwrapped(field) : [];
      }
      if (def.type === 'array') return typeof step === 'number' ? unwrapped(def.element) : [];
      return def.type === 'record' ? unwrapped(def.valueType) : [];
    });
  return level;
}

/** The fields that objects have there. */
function fieldsOf(schemas: readonly Schema[]): string[] {
  return [
    ...new Set(
      schemas.flatMap((schema) => {
        const def = (schema as z.core.$ZodTypes)._zod.def;
        return def.type === 'object' ? Object.keys(def.shape).filter((name) => name !== '$schema') : [];
      }),
    ),
  ];
}

export function valueAt(job: unknown, path: readonly PropertyKey[]): unknown {
  let value = job;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[step];
  }
  return value;
}
