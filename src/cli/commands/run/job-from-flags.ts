import { createWriteStream, existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { withEnvironment } from '../../../config/load.ts';
import { messageOf, SeineError } from '../../../core/errors.ts';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../../../core/file-modes.ts';
import {
  type FollowRule,
  type JobInput,
  type JobSpec,
  type SourceSpec,
  storesMedia,
  toJobName,
} from '../../../core/job-schema/job.ts';
import { FOLLOW_SCOPES } from '../../../core/job-schema/job-schema.ts';
import { FILE_FORMATS } from '../../../core/job-schema/source.ts';
import {
  isHttpUrl,
  isRemote,
  isWebSitemap,
  pathOf,
  type SourceObject,
  sourceObjectOf,
  stdinFileName,
} from '../../../core/job-schema/source-name.ts';
import { parseProxy } from '../../../core/proxies/proxy.ts';
import { anchorSource, isJobFile, type LoadedJob, loadJobFile } from '../../../job-file/load-job-file.ts';
import { parseJob } from '../../../job-file/parse-job.ts';
import { makeFolder } from '../../../machine/make-folder.ts';
import type { FileFormat } from '../../../sources/formats/file-format.ts';
import type { Context } from '../../context.ts';

/** The job that a `run` command line describes: a job file or sources, changed by flags. */
export async function jobFromCommandLine(context: Context): Promise<LoadedJob> {
  const { args } = context.parsed;
  if (args.length === 0) {
    throw new SeineError('nothing to run', {
      hint: 'pass a URL, a file of URLs, or a job file; see `seine run --help`',
    });
  }
  const jobFiles = args.filter(isJobFile);
  if (jobFiles.length > 0 && args.length > 1)
    throw new SeineError(`a job file must be the only argument, got ${args.length} arguments`);
  if (jobFiles.length === 1) {
    const loaded = await loadJobFile(jobFiles[0]!, withEnvironment(context.loaded.jobEnvironment));
    const changed = withFlags(loaded.spec, context);
    const { spec } = await parseJob(changed, 'the options', loaded.spec.name, loaded.handlers);
    if (loaded.handlers.size === 0) checkMediaFlags(spec, context);
    // Fields from flags are not in the file: reading pages again by it would lose them.
    return { ...loaded, spec, file: context.parsed.lists.select ? null : loaded.file };
  }
  const sources = await Promise.all(args.map((arg) => toSource(arg, context)));
  const definition = withFlags({ sources }, context);
  const { spec, handlers } = await parseJob(definition, 'the options', nameOf(args[0]!));
  checkMediaFlags(spec, context);
  return { spec, handlers, code: null, file: null };
}

export async function toSource(arg: string, context: Context): Promise<SourceSpec> {
  const { values, lists } = context.parsed;
  const format = values.format === undefined ? undefined : toFormat(values.format);
  const named: SourceObject =
    arg === '-'
      ? { file: await spoolStdin(context, format ?? 'txt'), format: format ?? 'txt', priority: 0 }
      : sourceObjectOf(arg);
  // With a format, what is behind a URL is a list and not a page.
  const source: SourceObject =
    'url' in named && format !== undefined ? { file: named.url, priority: 0 } : named;
  const { route } = values;
  if ('url' in source) {
    if (!URL.canParse(source.url)) throw new SeineError(`not an http(s) URL: ${arg}`);
    if (route !== undefined) throw new SeineError('--route applies only to files and sitemaps');
    return source.url;
  }
  if ('query' in source || 'websocket' in source) return source;
  const path = 'file' in source ? source.file : source.sitemap;
  if ('file' in source && statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new SeineError(`${path} is a folder`, {
      hint: `to read all files in it, use '${join(path, '*')}'`,
    });
  if ('file' in source && looksLikeSite(arg) && !existsSync(arg))
    throw new SeineError(
      `no such file: ${arg}; did you mean https://${arg.includes('/') ? arg : `${arg}/`} ?`,
    );
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path) && !isRemote(path))
    throw new SeineError(`not an http(s) URL: ${arg}`);
  const settings = 'file' in source ? { format, urlColumn: values['url-column'], meta: lists.meta } : {};
  return anchorSource(defined({ ...source, ...defined(settings), route }), process.cwd());
}

/** `shop.example`, `www.shop.example/chairs`: what people type into a browser. */
function looksLikeSite(arg: string): boolean {
  const [, host, rest] = /^((?:[a-z0-9-]+\.)+[a-z]{2,})(?::\d+)?(\/.*)?$/i.exec(arg) ?? [];
  if (host === undefined) return false;
  const ending = host.slice(host.lastIndexOf('.') + 1).toLowerCase();
  return rest !== undefined || !LIST_ENDINGS.has(ending);
}

/** A missing file with such an ending is a file. */
const LIST_ENDINGS = new Set([
  ...FILE_FORMATS,
  'tsv',
  'json',
  'xml',
  'gz',
  'zst',
  'rss',
  'atom',
  'html',
  'list',
]);

function toFormat(text: string): FileFormat {
  const format = FILE_FORMATS.find((name) => name === text);
  if (!format) throw new SeineError(`--format must be one of ${FILE_FORMATS.join(', ')}, got '${text}'`);
  return format;
}

/** Standard input cannot be read twice, so it is kept: a resumed job reads on where it was. */
async function spoolStdin(context: Context, format: FileFormat): Promise<string> {
  if (format === 'parquet')
    throw new SeineError('Parquet cannot be read from standard input', { hint: 'pass the name of the file' });
  if (context.parsed.values['dry-run']) return '-';
  const dir = resolve(context.settings.dir, 'inputs');
  // The folder is private, what it is in need not be.
  try {
    makeFolder(dir, { mode: PRIVATE_FOLDER, top: dirname(dir) });
  } catch (error) {
    throw new SeineError(`cannot write to the folder ${dirname(dir)}: ${messageOf(error)}`, {
      hint: 'choose another folder with --dir',
      cause: error,
    });
  }
  const path = join(dir, stdinFileName(Date.now(), process.pid, format));
  await pipeline(process.stdin, createWriteStream(path, { mode: PRIVATE_FILE }));
  return path;
}

/** From the host of a URL or site, else from the name of the file. */
function nameOf(arg: string): string {
  if (arg === '-') return 'stdin';
  const source = sourceObjectOf(arg);
  if ('url' in source) return toJobName(hostOf(source.url));
  if ('sitemap' in source && isWebSitemap(source.sitemap)) return toJobName(hostOf(source.sitemap));
  const path = pathOf('file' in source ? source.file : arg.replace(/^sitemap:/, ''));
  const file = basename(path).replace(/\.\w+(\.gz)?$/, '');
  // Of `s3://bucket/images/*.parquet`, the folder says more than the star.
  return toJobName(/\w/.test(file) ? file : basename(dirname(path)));
}

function hostOf(name: string): string {
  return URL.parse(isHttpUrl(name) ? name : `https://${name}`)?.hostname ?? name;
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
      requests: number('max-requests') ?? job.limits?.requests,
      dollars: number('max-dollars') ?? job.limits?.dollars,
      browserSeconds: number('max-browser-seconds') ?? job.limits?.browserSeconds,
    }),
    politeness: defined({
      ...job.politeness,
      rate: values.rate === 'max' ? ('max' as const) : (number('rate') ?? job.politeness?.rate),
      parallel: number('parallel') ?? job.politeness?.parallel,
      adaptive: values['no-adaptive'] ? false : job.politeness?.adaptive,
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
  if (values.proxies !== undefined) result.proxies = withPool(result.proxies, values.proxies);
  if (values['no-archive']) result.archive = false;
  if (lists.select)
    result.routes = [
      ...(job.routes ?? []),
      { name: 'page', select: Object.fromEntries(lists.select.map(toField)) },
    ];
  return withBrowser(withMedia(result, values), values);
}

/** The list becomes a pool of its own, for whatever has none by its route. */
function withPool(proxies: JobInput['proxies'], file: string): JobInput['proxies'] {
  // Not quoted: it has a password in it.
  if (parseProxy(file) !== null)
    throw new SeineError('--proxies needs the name of a file, got a proxy', {
      hint: 'write the proxy into a file, one per line',
    });
  const pools = { ...proxies?.pools, [FILE_POOL]: { from: { file: resolve(file) } } };
  return { ...proxies, pools, default: FILE_POOL };
}

const FILE_POOL = 'file';
const PACKS = ['none', 'webdataset'] as const;

function withMedia(job: JobInput, values: Context['parsed']['values']): JobInput {
  const pack = PACKS.find((name) => name === values.pack);
  if (values.pack !== undefined && !pack)
    throw new SeineError(`--pack must be one of ${PACKS.join(', ')}, got '${values.pack}'`);
  const types = values['media-types']?.split(',').map((type) => type.trim());
  const media = defined({ ...job.media, pack: pack ?? job.media?.pack, types: types ?? job.media?.types });
  // Before all others, as every URL is meant.
  const routes = values.media
    ? [{ name: 'media', kind: 'media' as const }, ...(job.routes ?? [])]
    : job.routes;
  return defined({ ...job, media, routes });
}

/** What says how objects are stored means that some are wanted. */
function checkMediaFlags(spec: JobSpec, { parsed: { values } }: Context): void {
  const flag = ['pack', 'media-types'].find((name) => values[name] !== undefined);
  if (flag !== undefined && !storesMedia(spec))
    throw new SeineError(`--${flag} needs a job that stores media`, {
      hint: 'use --media to store every URL as a file, or add `media` rules or routes to the job file',
    });
}

function toField(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw new SeineError(`--select needs name=css, got '${text}'`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function toScope(text: string): FollowRule['within'] {
  const scope = FOLLOW_SCOPES.find((name) => name === text);
  if (!scope) throw new SeineError(`--follow must be one of ${FOLLOW_SCOPES.join(', ')}, got '${text}'`);
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

type RouteInput = NonNullable<JobInput['routes']>[number];

const EXTENTS = { full: 'page', screen: 'screen' } as const;
const MODES = { always: 'browser', auto: 'auto' } as const;

/** `--browser` and what goes with it: every page of the job is meant, also those without a route. */
export function withBrowser(job: JobInput, values: Context['parsed']['values']): JobInput {
  const { browser, screenshot, pdf, 'wait-for': waitFor } = values;
  if ([browser, screenshot, pdf, waitFor].every((value) => value === undefined)) return job;
  const fetcher = choose('--browser', MODES, browser ?? 'always');
  const of = screenshot === undefined ? null : choose('--screenshot', EXTENTS, screenshot);
  if (fetcher === 'auto' && (of !== null || pdf))
    throw new SeineError(`--${of === null ? 'pdf' : 'screenshot'} needs a browser for every page`, {
      hint: 'use --browser without =auto',
    });
  const render = (route: RouteInput): RouteInput => {
    if (route.kind === 'media' || route.kind === 'sitemap') return route;
    const actions = waitFor === undefined ? [] : [{ waitFor }];
    // Whoever looks at a page wants to see it whole.
    const settings = {
      ...(waitFor === undefined ? { waitUntil: 'idle' as const } : {}),
      ...route.browser,
      ...(of === null ? {} : { screenshot: { of } }),
      ...(pdf ? { pdf: true } : {}),
      actions: [...actions, ...(route.browser?.actions ?? [])],
    };
    return { ...route, fetcher, browser: settings };
  };
  const routes = job.routes ?? [];
  const takesAll = routes.some((route) => route.match === undefined);
  const rest: RouteInput[] = takesAll ? [] : [{ name: freeName(routes) }];
  return { ...job, routes: [...routes, ...rest].map(render) };
}

function choose<T extends string>(option: string, choices: Record<string, T>, text: string): T {
  if (Object.hasOwn(choices, text)) return choices[text]!;
  throw new SeineError(`${option} must be one of ${Object.keys(choices).join(', ')}, got '${text}'`);
}

function freeName(routes: readonly RouteInput[]): string {
  const isTaken = (name: string) => routes.some((route) => route.name === name);
  let name = 'page';
  for (let count = 2; isTaken(name); count++) name = `page-${count}`;
  return name;
}
