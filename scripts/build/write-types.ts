import { writeFileSync } from 'node:fs';
import { jobJsonSchema } from '../../src/job-file/json-schema.ts';
import { jobFields, type Schema } from '../docs/job-fields.ts';
import { readOptions } from '../read-options.ts';

/** The types of jobs with a text on every field, for editors: `npx node scripts/build/write-types.ts`; a test compares. */

export const TYPES_FILE = 'src/job-file/job-input.ts';

/** What the definitions of the schema, which have numbers, are called. */
const NAMES: Record<string, string> = { '#/$defs/__schema0': 'FieldInput' };

/** Editors show the text of a field that is declared in one place, and not where each kind of source declares it anew. */
const SHARED_BY_SOURCES: Record<string, string> = { route: 'SourceRoute', priority: 'SourcePriority' };

const isSource = (path: string) => path === 'sources.' || path === 'sources[].';

function pick(schema: Schema, isWanted: (name: string) => boolean): Schema {
  const properties = Object.entries(schema.properties ?? {}).filter(([name]) => isWanted(name));
  return { ...schema, properties: Object.fromEntries(properties) };
}

/** Any of its kinds that has this field. */
function sourceWith(field: string, schema: Schema): Schema {
  const kinds = [schema, ...(schema.anyOf ?? []).map((each) => sourceWith(field, each))];
  return kinds.find(({ properties }) => properties?.[field]) ?? {};
}

export function jobTypes(): string {
  const schema = jobJsonSchema() as Schema;
  const texts = new Map(jobFields().map(({ path, doc }) => [path, doc]));
  const definitions = Object.entries(schema.$defs ?? {}).map(([key, each]) => {
    const name = NAMES[`#/$defs/${key}`];
    if (!name) throw new Error(`no name for the definition ${key}`);
    return `/** A field of a record: see docs/extraction.md. */\nexport interface ${name} ${typeOf(each, '', '', texts)}`;
  });
  const shared = Object.entries(SHARED_BY_SOURCES).map(([field, name]) => {
    const source = pick(sourceWith(field, schema.properties!.sources!), (each) => each === field);
    return `interface ${name} ${typeOf(source, '', 'sources[].', texts)}`;
  });
  const { routes, ...rest } = schema.properties!;
  const job = { ...schema, properties: rest };
  const { select: _, schema: __, ...routeFields } = routes!.items!.properties!;
  const route = { ...routes!.items!, properties: routeFields };
  return [
    '/** Written by npx node scripts/build/write-types.ts from the schema of jobs. */',
    ...definitions,
    ...shared,
    `/** A route, but for its functions, and what TypeScript knows more of: select and schema. */\nexport interface RouteFields ${typeOf(route, '', 'routes[].', texts)}`,
    `/** A job, but for its routes. */\nexport interface JobFields ${typeOf(job, '', '', texts)}`,
    '',
  ].join('\n\n');
}

function typeOf(schema: Schema, indent: string, path: string, texts: ReadonlyMap<string, string>): string {
  if (schema.$ref) return NAMES[schema.$ref] ?? 'unknown';
  if (schema.anyOf) {
    const parts = schema.anyOf.map((each) => {
      const shared = Object.keys(each.properties ?? {}).filter(
        (name) => isSource(path) && name in SHARED_BY_SOURCES,
      );
      const own = shared.length === 0 ? each : pick(each, (name) => !shared.includes(name));
      return [typeOf(own, indent, path, texts), ...shared.map((name) => SHARED_BY_SOURCES[name])].join(' & ');
    });
    return [...new Set(parts)].join(' | ');
  }
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  if (schema.const !== undefined) return literal(schema.const);
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'number':
    case 'integer':
      return 'number';
    case 'array':
      return `readonly (${typeOf(schema.items ?? {}, indent, listPath(path), texts)})[]`;
    case 'object':
      return objectType(schema, indent, path, texts);
    default:
      return 'unknown';
  }
}

const listPath = (path: string) => (path.endsWith('.') ? `${path.slice(0, -1)}[].` : path);

function objectType(
  schema: Schema,
  indent: string,
  path: string,
  texts: ReadonlyMap<string, string>,
): string {
  const { properties, additionalProperties, required = [] } = schema;
  if (!properties) {
    const inner = typeof additionalProperties === 'object' ? additionalProperties : {};
    return `Record<string, ${typeOf(inner, indent, `${path}*.`, texts)}>`;
  }
  const deeper = `${indent}  `;
  const lines = Object.entries(properties).flatMap(([name, each]) => {
    const doc =
      each.description ??
      texts.get(`${path}${name}`) ??
      texts.get(`${path}${name}`.replace('sources.', 'sources[].'));
    const isNeeded = required.includes(name) && each.default === undefined;
    const type = typeOf(each, deeper, `${path}${name}.`, texts);
    const mark = isNeeded ? ':' : '?:';
    return [
      ...(doc ? [`${deeper}/** ${doc.replaceAll('*/', '*\\/')} */`] : []),
      `${deeper}${/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)}${mark} ${type}${isNeeded ? '' : ' | undefined'};`,
    ];
  });
  return `{\n${lines.join('\n')}\n${indent}}`;
}

const literal = (value: unknown) => (typeof value === 'string' ? `'${value}'` : String(value));

if (import.meta.main) {
  readOptions({
    start: 'npx node scripts/build/write-types.ts',
    about: `Writes the types of jobs with a text on every field, for editors: ${TYPES_FILE}.`,
  });
  writeFileSync(TYPES_FILE, jobTypes());
}
