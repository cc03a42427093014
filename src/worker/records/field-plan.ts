import { SeineError } from '../../core/errors.ts';
import type { FieldSpec } from '../../core/job-schema/job.ts';
import { isCurrency } from '../../core/values/currencies.ts';
import { type DataPath, parseDataPath } from './json-ld.ts';

type FieldsSpec = Record<string, FieldSpec | FieldText>;
type FieldText = string;

/** Where a value comes from; `here` is the page, or the element that the field is read in. */
type Origin = { kind: 'css'; css: string } | { kind: 'here' } | { kind: 'data'; path: DataPath };

/** A field as it is to be read, checked for what makes no sense. */
export interface FieldPlan {
  name: string;
  /** As error messages call it: with its route, and the fields around it. */
  place: string;
  /** The fields around it and its own: `offers.price`. */
  path: string;
  origin: Origin;
  attr: string | undefined;
  isMeta: boolean;
  spec: Omit<FieldSpec, 'fields'>;
  fields: FieldPlan[] | null;
}

/** What messages need to say where a field is. */
interface Around {
  route: string | null;
  path: string;
  /** Inside elements, rather than in the whole page. */
  scoped: boolean;
}

export function planFields(fields: FieldsSpec, route: string | null): FieldPlan[] {
  return planWithin(fields, { route, path: '', scoped: false });
}

function planWithin(fields: FieldsSpec, around: Around): FieldPlan[] {
  return Object.entries(fields).map(([name, spec]) => planField(name, spec, around));
}

function planField(name: string, written: FieldSpec | FieldText, around: Around): FieldPlan {
  const path = around.path === '' ? name : `${around.path}.${name}`;
  const place = `field '${path}'${around.route === null ? '' : ` of route '${around.route}'`}`;
  if (name === '__proto__') throw new SeineError(`${place} needs another name`);
  const { fields, ...spec } = typeof written === 'string' ? ofShorthand(written) : written;
  const problem = fields ? problemOfObject(spec, fields) : problemOfValue(spec, around.scoped);
  if (problem) throw new SeineError(`${place} ${problem}`);
  const origin = originOf(spec, place);
  const isMeta = spec.meta !== undefined;
  return {
    name,
    place,
    path,
    origin,
    attr: isMeta ? 'content' : spec.attr?.toLowerCase(),
    isMeta,
    spec,
    fields: fields
      ? planWithin(fields, { ...around, path, scoped: around.scoped || origin.kind === 'css' })
      : null,
  };
}

/** `img.main@src`: the attribute comes after the last @ that is not inside brackets. */
function ofShorthand(text: string): FieldSpec {
  const match = /^(.*)@([\w:-]+)$/.exec(text);
  const css = match ? match[1]!.trim() : text;
  return { css: css === '' ? undefined : css, attr: match?.[2], all: false, type: 'text', required: false };
}

function originOf(spec: FieldPlan['spec'], place: string): Origin {
  if (spec.css !== undefined) return { kind: 'css', css: spec.css };
  if (spec.meta !== undefined) return { kind: 'css', css: metaSelector(spec.meta) };
  if (spec.jsonLd === undefined) return { kind: 'here' };
  const path = parseDataPath(spec.jsonLd);
  if (!path) throw new SeineError(`${place} has no path like Product.offers.price: ${spec.jsonLd}`);
  return { kind: 'data', path };
}

/** Sites use name and property for each other, in any case. */
function metaSelector(name: string): string {
  const text = `"${name.replace(/["\\]/g, '\\$&')}" i`;
  return `meta[property=${text}], meta[name=${text}], meta[itemprop=${text}]`;
}

const quoted = (names: string[]) => names.join(' and ');

function problemOfObject(spec: FieldPlan['spec'], fields: FieldsSpec): string | null {
  const foreign = (['attr', 'jsonLd', 'meta', 'regex', 'currency', 'decimal', 'dayFirst'] as const).filter(
    (name) => spec[name] !== undefined,
  );
  if (foreign.length > 0) return `has fields, so it cannot have ${quoted(foreign)}`;
  if (spec.type !== 'text') return `has fields, so it cannot be a ${spec.type}`;
  if (Object.keys(fields).length === 0) return 'has an empty list of fields';
  return spec.all && spec.css === undefined ? 'has all, but no css' : null;
}

function problemOfValue(spec: FieldPlan['spec'], scoped: boolean): string | null {
  const { type } = spec;
  const origins = (['css', 'jsonLd', 'meta'] as const).filter((name) => spec[name] !== undefined);
  if (origins.length > 1) return `has ${quoted(origins)}, but only one of them is allowed`;
  const isOfPage = spec.jsonLd !== undefined || spec.meta !== undefined;
  if (isOfPage && scoped) return `is a nested field, so it cannot have ${quoted(origins)}`;
  if (isOfPage && spec.attr !== undefined) return `has ${quoted(origins)}, so it cannot have attr`;
  if (!scoped && origins.length === 0 && (spec.regex === undefined || spec.attr !== undefined))
    return 'needs css, jsonLd, meta or regex';
  if (type === 'html' || type === 'markdown') {
    if (isOfPage || spec.attr !== undefined || (!scoped && spec.css === undefined))
      return `has type ${type}, which needs css and no attr`;
  }
  if (spec.currency !== undefined && type !== 'money') return 'has a currency, but its type is not money';
  if (spec.currency !== undefined && !isCurrency(spec.currency))
    return `has an unknown currency: ${spec.currency}`;
  if (spec.decimal !== undefined && type !== 'money' && type !== 'number')
    return 'has a decimal mark, but its type is not number or money';
  return spec.dayFirst !== undefined && type !== 'date' ? 'has dayFirst, but its type is not date' : null;
}
