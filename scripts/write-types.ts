import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { jobJsonSchema } from '../src/job-file/json-schema.ts';
import { jobFields } from './job-fields.ts';

/** The types of jobs with a text on every field, for editors: `npx node scripts/write-types.ts`; a test compares. */

export const TYPES_FILE = 'src/job-file/job-input.ts';

interface Schema {
  type?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  $ref?: string;
  $defs?: Record<string, Schema>;
}

/** What the definitions of the schema, which have numbers, are called. */
const NAMES: Record<string, string> = { '#/$defs/__schema0': 'FieldInput' };

export function jobTypes(): string {
  const schema = jobJsonSchema() as Schema;
  const texts = new Map(jobFields().map(({ path, doc }) => [path, doc]));
  const definitions = Object.entries(schema.$defs ?? {}).map(([key, each]) => {
    const name = NAMES[`#/$defs/${key}`];
    if (!name) throw new Error(`no name for the definition ${key}`);
    return `/** A field of a record: see docs/extraction.md. */\nexport interface ${name} ${typeOf(each, '', '', texts)}`;
  });
  const { routes, ...rest } = schema.properties!;
  const job = { ...schema, properties: rest };
  const { select: _, schema: __, ...routeFields } = routes!.items!.properties!;
  const route = { ...routes!.items!, properties: routeFields };
  return [
    '/** Written by npx node scripts/write-types.ts from the schema of jobs. */',
    ...definitions,
    `/** A route, but for its functions, and what TypeScript knows more of: select and schema. */\nexport interface RouteFields ${typeOf(route, '', 'routes[].', texts)}`,
    `/** A job, but for its routes. */\nexport interface JobFields ${typeOf(job, '', '', texts)}`,
    '',
  ].join('\n\n');
}

function typeOf(schema: Schema, indent: string, path: string, texts: ReadonlyMap<string, string>): string {
  if (schema.$ref) return NAMES[schema.$ref] ?? 'unknown';
  if (schema.anyOf) {
    const parts = schema.anyOf.map((each) => typeOf(each, indent, path, texts));
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

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(TYPES_FILE, jobTypes());
