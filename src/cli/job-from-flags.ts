import { createWriteStream, mkdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { SeineError } from '../core/errors.ts';
import { type FollowRule, type JobInput, type JobSpec, toJobName } from '../core/job.ts';
import { FOLLOW_SCOPES } from '../core/job-schema.ts';
import { anchorSource, isJobFile, type LoadedJob, loadJobFile } from '../job/load-job-file.ts';
import { parseJob } from '../job/parse-job.ts';
import type { Context } from './context.ts';

/** The job that a `run` command line describes: a job file or sources, changed by flags. */
export async function jobFromCommandLine(context: Context): Promise<LoadedJob> {
  const { args } = context.parsed;
  if (args.length === 0) {
    throw new SeineError('nothing to run', {
      hint: 'give a URL, a file of URLs, or a job file; see `seine run --help`',
    });
  }
  const jobFiles = args.filter(isJobFile);
  if (jobFiles.length > 0 && args.length > 1)
    throw new SeineError(`a job file runs alone, got ${args.length} arguments`);
  if (jobFiles.length === 1) {
    const loaded = await loadJobFile(jobFiles[0]!);
    const { spec } = parseJob(withFlags(loaded.spec, context), 'the options', loaded.spec.name);
    return { ...loaded, spec };
  }
  const sources = await Promise.all(args.map((arg) => toSource(arg, context)));
  const definition = withFlags({ sources }, context);
  const { spec, handlers } = parseJob(definition, 'the options', nameOf(args[0]!));
  return { spec, handlers, code: null };
}

async function toSource(arg: string, context: Context): Promise<NonNullable<JobSpec['sources']>[number]> {
  const urlColumn = context.parsed.values['url-column'] ?? 'url';
  if (arg === '-') return { file: await spoolStdin(context), format: 'txt', urlColumn, priority: 0 };
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(arg)) {
    if (!/^https?:/i.test(arg) || !URL.canParse(arg)) throw new SeineError(`not an http(s) URL: ${arg}`);
    return arg;
  }
  return anchorSource({ file: arg, urlColumn, priority: 0 }, process.cwd());
}

/** Standard input cannot be read twice, so it is kept: a resumed job reads on where it was. */
async function spoolStdin(context: Context): Promise<string> {
  if (context.parsed.values['dry-run']) return '-';
  const dir = resolve(context.settings.dir, 'inputs');
  mkdirSync(dir, { recursive: true });
  const path = join(dir, `stdin-${Date.now()}-${process.pid}.txt`);
  await pipeline(process.stdin, createWriteStream(path));
  return path;
}

function nameOf(arg: string): string {
  if (arg === '-') return 'stdin';
  if (/^https?:/i.test(arg)) return toJobName(new URL(arg).hostname);
  return toJobName(basename(arg).replace(/\.\w+(\.gz)?$/, ''));
}

/** Flags win over the job file. */
function withFlags(job: JobSpec | JobInput, context: Context): JobInput {
  const { values, lists } = context.parsed;
  const number = (name: string) =>
    values[name] === undefined ? undefined : toNumber(`--${name}`, values[name]);
  const contact = context.loaded.config.contact ?? undefined;
  const result: JobInput = {
    ...(job as JobInput),
    limits: defined({
      ...job.limits,
      pages: number('max-pages') ?? job.limits?.pages,
      depth: number('depth') ?? job.limits?.depth,
      seconds: number('max-seconds') ?? job.limits?.seconds,
      bytes: number('max-bytes') ?? job.limits?.bytes,
    }),
    politeness: defined({
      ...job.politeness,
      rate: values.rate === 'max' ? ('max' as const) : (number('rate') ?? job.politeness?.rate),
      parallel: number('parallel') ?? job.politeness?.parallel,
      robots: values['no-robots'] ? false : job.politeness?.robots,
    }),
    identity: defined({
      ...job.identity,
      userAgent: values['user-agent'] ?? job.identity?.userAgent,
      contact: job.identity?.contact ?? contact,
    }),
  };
  if (values.follow !== undefined) result.follow = toScope(values.follow);
  if (values.name !== undefined) result.name = values.name;
  if (values['batch-size'] !== undefined) result.batchSize = toNumber('--batch-size', values['batch-size']);
  if (values['allow-private']) result.allowPrivate = true;
  if (values['no-archive']) result.archive = false;
  if (lists.select)
    result.routes = [
      ...(job.routes ?? []),
      { name: 'page', select: Object.fromEntries(lists.select.map(toField)) },
    ];
  return result;
}

function toField(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw new SeineError(`--select needs name=css, got '${text}'`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function toScope(text: string): FollowRule['within'] {
  const scope = FOLLOW_SCOPES.find((name) => name === text);
  if (!scope) throw new SeineError(`--follow is one of ${FOLLOW_SCOPES.join(', ')}, not '${text}'`);
  return scope;
}

/** `--depth 0` makes sense, no other zero does. */
export function toNumber(option: string, text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value))
    throw new SeineError(`${option} needs a number, got '${text}'`);
  if (value < 0 || (value === 0 && option !== '--depth'))
    throw new SeineError(`${option} must be above 0, got ${text}`);
  return value;
}

function defined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}
