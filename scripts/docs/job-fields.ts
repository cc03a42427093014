import { jobSchema } from '../../src/core/job-schema/job-schema.ts';
import { jobJsonSchema } from '../../src/job-file/json-schema.ts';

/** Every field of a job, read from the schema that checks jobs. */

interface JobField {
  /** `routes[].select.*.css`: `[]` stands for each of a list, `*` for any name. */
  path: string;
  type: string;
  shownDefault: string;
  doc: string;
}

/** What is used of a JSON Schema. */
export interface Schema {
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

/** Where the schema has no words of its own. */
const DOCS: Record<string, string> = {
  $schema: 'For editors: location of the JSON Schema.',
  'sources[].priority': 'Higher runs first.',
  'routes[].media[].priority': 'Higher runs first.',
  'routes[].paginate.priority': 'Higher runs first.',
  'routes[].paginate.count.attr': 'Attribute to read instead of the text.',
};

const GROUPED = [
  'limits',
  'politeness',
  'identity',
  'archive',
  'proxies',
  'api',
  'login',
  'timeouts',
  'retry',
  'escalation',
  'scaling',
  'breaker',
  'blocking',
  'records',
  'revisit',
  'media',
  'schedule',
  'notify',
  'sink',
  'url',
];

export function jobFields(): JobField[] {
  const fields: JobField[] = [];
  const defaults: unknown = jobSchema.parse({ sources: 'https://shop.example/' });
  const schema = jobJsonSchema() as Schema;
  visit(schema, '', fields, defaults, schema.$defs ?? {});
  // Several kinds of sources have fields in common.
  return fields.filter(({ path }, index) => fields.findIndex((field) => field.path === path) === index);
}

export function fieldGroups(): { title: string; fields: JobField[] }[] {
  const fields = jobFields();
  const of = (test: (path: string) => boolean) => fields.filter(({ path }) => test(path));
  const lists = ['sources', 'routes', 'follow'];
  const within = (name: string) => (path: string) =>
    path.startsWith(`${name}.`) || path.startsWith(`${name}[]`);
  return [
    { title: 'Job', fields: of((path) => !/[.[]/.test(path)) },
    ...lists.map((name) => ({ title: `${name}[]`, fields: of(within(name)) })),
    ...GROUPED.map((name) => ({ title: name, fields: of(within(name)) })),
  ];
}

function visit(
  schema: Schema,
  path: string,
  fields: JobField[],
  defaults: unknown,
  definitions: Record<string, Schema>,
): void {
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const inner = path === '' ? name : `${path}.${name}`;
    const parsed = (defaults as Record<string, unknown> | undefined)?.[name];
    if (!GROUPED.includes(inner) || inner === 'archive') {
      fields.push({
        path: inner,
        type: typeOf(property),
        shownDefault: defaultOf(inner, property, parsed, schema.required?.includes(name) ?? false),
        doc: property.description ?? DOCS[inner] ?? '',
      });
    }
    // Fields within fields are like the fields themselves.
    if (inner.endsWith('.fields')) continue;
    for (const [below, ending] of innerObjects(property, definitions)) {
      const known = ending === '' ? parsed : undefined;
      visit(below, inner + ending, fields, known, definitions);
    }
  }
}

/** Objects that a field may hold, with what stands for them in a path. */
function innerObjects(schema: Schema, definitions: Record<string, Schema>): [Schema, string][] {
  const found: [Schema, string][] = [];
  const look = (one: Schema, ending: string) => {
    if (one.$ref) look(definitions[one.$ref.slice(one.$ref.lastIndexOf('/') + 1)] ?? {}, ending);
    if (one.properties) found.push([one, ending]);
    if (typeof one.additionalProperties === 'object') look(one.additionalProperties, `${ending}.*`);
    if (one.items) look(one.items, `${ending}[]`);
    for (const choice of one.anyOf ?? []) look(choice, ending);
  };
  look(schema, '');
  // One source alone is written like one of a list.
  const inList = found.some(([, ending]) => ending === '[]');
  return found.filter(([, ending]) => !(inList && ending === ''));
}

function typeOf(schema: Schema): string {
  const kinds = new Set<string>();
  const look = (one: Schema) => {
    if (one.enum) for (const value of one.enum) kinds.add(`\`${value}\``);
    else if (one.const !== undefined) kinds.add(`\`${one.const}\``);
    else if (one.anyOf) one.anyOf.forEach(look);
    else if (one.type === 'array') kinds.add('list');
    else if (one.type === 'integer') kinds.add('whole number');
    else if (one.type === 'boolean') kinds.add('true or false');
    else if (one.type === 'string') kinds.add('text');
    else if (one.$ref) kinds.add('object');
    else if (one.type !== 'null') kinds.add(one.type ?? 'any');
  };
  look(schema);
  return [...kinds].join(', ');
}

function defaultOf(path: string, schema: Schema, parsed: unknown, required: boolean): string {
  if (required) return 'required';
  const value = path.includes('[]') ? schema.default : (parsed ?? schema.default);
  if (value === null || value === undefined) return 'none';
  if (Array.isArray(value) || typeof value === 'object') return Object.keys(value).length === 0 ? 'none' : '';
  return typeof value === 'number' ? value.toLocaleString('en') : `\`${String(value)}\``;
}
