import { canonicalJson } from '../values/canonical-json.ts';
import type { JobSpec } from './job.ts';

/** A field of a job that another one has otherwise. */
export interface FieldChange {
  /** As in docs/jobs.md: `politeness.rate`. */
  field: string;
  from: unknown;
  to: unknown;
}

/**
 * What two jobs of one name differ in. A run goes on with another pace and other limits (`tuned`). With anything else
 * (`scraped`), pages that are done would be of another kind than those to come: that is another run. So are a depth and a
 * limit per template: links that they refused are not found again.
 */
interface JobChange {
  tuned: FieldChange[];
  scraped: FieldChange[];
}

/** The fields that change how fast and how far a run goes; each with all below it. */
const TUNABLE = [
  'politeness.rate',
  'politeness.parallel',
  'politeness.adaptive',
  'politeness.jitter',
  'politeness.hosts',
  'politeness.log',
  'limits.pages',
  'limits.bytes',
  'limits.seconds',
  'limits.requests',
  'limits.dollars',
  'limits.browserSeconds',
  'limits.diskFreeBytes',
  'limits.window',
  'timeouts',
  'retry',
  'breaker',
  'tail',
  'escalation',
  'scaling',
  'batchSize',
  'schedule',
  'notify',
];

export function compareJobs(before: JobSpec, after: JobSpec): JobChange {
  const changes = [...differences(before, after, '')];
  const isTuned = ({ field }: FieldChange) =>
    TUNABLE.some((name) => field === name || field.startsWith(`${name}.`));
  return { tuned: changes.filter(isTuned), scraped: changes.filter((change) => !isTuned(change)) };
}

function* differences(from: unknown, to: unknown, field: string): Iterable<FieldChange> {
  if (isGroup(from) && isGroup(to) && field !== 'politeness.hosts') {
    for (const name of new Set([...Object.keys(from), ...Object.keys(to)]))
      yield* differences(from[name], to[name], field === '' ? name : `${field}.${name}`);
  } else if (textOf(from) !== textOf(to)) {
    yield { field, from, to };
  }
}

function isGroup(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Nothing, null and what is left out are the same. */
function textOf(value: unknown): string {
  return value === undefined || value === null ? 'null' : canonicalJson(value);
}

const SHOWN_MAX = 60;

/** For people: `politeness.rate: 4 → 20`. */
export function changeText({ field, from, to }: FieldChange): string {
  const shown = (value: unknown) => {
    if (value === undefined || value === null) return 'none';
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
  };
  return `${field}: ${shown(from)} → ${shown(to)}`;
}
