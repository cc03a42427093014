import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { stringify } from 'yaml';
import { SeineError } from '../../src/core/errors.ts';
import { jobJsonSchema } from '../../src/job-file/json-schema.ts';
import { asItIs } from '../../src/job-file/load-handlers.ts';
import { loadJobFile } from '../../src/job-file/load-job-file.ts';
import { completeSpec, hashOfSpec, parseJob } from '../../src/job-file/parse-job.ts';
import { HOSTILE_TEXTS } from '../hostile-texts.ts';
import { mutate } from '../mutate.ts';
import type { Random } from '../random.ts';
import { must, mustEqual, type Target } from '../target.ts';

/**
 * Job files, made from the schema that is published for editors: each is accepted, or refused with a message for people.
 * What is accepted means the same when it is read again. Text that begins with `{` is JSON, other text YAML.
 */

interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema | Schema[];
  anyOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  $ref?: string;
}

const SCHEMA = jobJsonSchema() as Schema & { $defs?: Record<string, Schema> };
const TEXTS = [
  'https://a.example/',
  '/p/*',
  'h1',
  '.price@title',
  'p',
  'list',
  '*',
  'a[href]',
  '\\d+',
  '(a+)+$',
  'list.csv',
  '{page}',
  '?page={page}',
  '0 3 * * *',
  '09:00-17:00',
  'Europe/Berlin',
  'EUR',
  'en-GB',
  'http://a:b@c:1',
  '',
  ...HOSTILE_TEXTS,
];
const ODD: unknown[] = [null, true, -1, 0, 1e308, 0.5, '', [], {}, [[]], 'x', ...HOSTILE_TEXTS];
const PIECES = [
  ': ',
  '- ',
  '\n',
  '  ',
  '&a ',
  '*a',
  '!!js/function ',
  '<<: ',
  '{',
  '}',
  '[',
  ']',
  '"',
  "'",
  '#',
  '|',
  '---\n',
  '__proto__: ',
  'constructor: ',
];

class JobMaker {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  make(schema: Schema, depth = 0): unknown {
    const random = this.#random;
    if (random.oneIn(60)) return random.pick(ODD);
    if (schema.$ref !== undefined)
      return depth > 8 ? 'h1' : this.make(SCHEMA.$defs![schema.$ref.split('/').at(-1)!]!, depth + 1);
    if (schema.anyOf) return this.make(random.pick(schema.anyOf), depth);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum) return random.pick(schema.enum);
    switch (schema.type) {
      case 'object':
        return this.#object(schema, depth);
      case 'array':
        return random.list(1, 2, () =>
          this.make(Array.isArray(schema.items) ? schema.items[0]! : (schema.items ?? {}), depth + 1),
        );
      case 'string':
        return random.pick(TEXTS);
      case 'integer':
      case 'number':
        return random.pick([schema.minimum ?? 1, Math.min(schema.maximum ?? 5, 5), 1, 2]);
      case 'boolean':
        return random.oneIn(2);
      case 'null':
        return null;
      default:
        return random.pick(ODD);
    }
  }

  #object({ properties = {}, required = [], additionalProperties }: Schema, depth: number): object {
    const random = this.#random;
    const entries = Object.entries(properties)
      .filter(([name]) => required.includes(name) || random.oneIn(depth === 0 ? 6 : 3))
      .map(([name, schema]): [string, unknown] => [name, this.make(schema, depth + 1)]);
    if (typeof additionalProperties === 'object')
      entries.push(
        ...random.list(1, 2, (): [string, unknown] => [
          random.pick(['a', 'b', ...HOSTILE_TEXTS]),
          this.make(additionalProperties, depth + 1),
        ]),
      );
    if (random.oneIn(40)) entries.push([random.pick(HOSTILE_TEXTS), random.pick(ODD)]);
    return Object.fromEntries(entries);
  }
}

export async function openJobsTarget(): Promise<Target> {
  const dir = await mkdtemp(join(tmpdir(), 'seine-fuzz-'));
  // What a library warns of is printed, with pieces of the file.
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  return {
    generate(random) {
      const made = new JobMaker(random).make(SCHEMA);
      const job =
        typeof made === 'object' && made !== null && random.oneIn(2)
          ? { ...made, sources: 'https://a.example/' }
          : made;
      const bytes = Buffer.from(random.oneIn(3) ? JSON.stringify(job) : stringify(job));
      return random.oneIn(4) ? mutate(bytes, random, PIECES) : bytes;
    },
    async check(input) {
      const path = join(dir, input[0] === 0x7b ? 'job.json' : 'job.yaml');
      await writeFile(path, input);
      const job = await loadJobFile(path, asItIs).catch((error: unknown) => {
        if (!(error instanceof SeineError)) throw error;
        must(
          error.message.length < 20_000 && !/\[object Object\]|undefined is not/.test(error.message),
          `the message is ${error.message.slice(0, 200)}`,
        );
        return null;
      });
      // Node tells of them a turn later.
      await setImmediate();
      const warning = warnings.pop();
      must(warning === undefined, `a warning is printed: ${warning?.message}`);
      if (job === null) return;
      const stored = JSON.parse(JSON.stringify(job.spec)) as typeof job.spec;
      const again = await parseJob(stored, 'again', 'again');
      mustEqual(again.spec, job.spec, 'read again');
      mustEqual(completeSpec(stored), job.spec, 'completed');
      mustEqual(hashOfSpec(again.spec, null), hashOfSpec(job.spec, null), 'hash');
    },
    async close() {
      process.off('warning', onWarning);
      await rm(dir, { recursive: true });
    },
  };
}
