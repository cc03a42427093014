import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AppSettings, startRun } from '../../../app/app.ts';
import { type Folder, openFolder } from '../../../app/folder.ts';
import { withEnvironment } from '../../../config/load.ts';
import { requireJob, submitJob } from '../../../coordinator/jobs.ts';
import { SeineError } from '../../../core/errors.ts';
import type { JobSpec } from '../../../core/job-schema/job.ts';
import { isHttpUrl } from '../../../core/job-schema/source-name.ts';
import type { TaskRow } from '../../../core/model.ts';
import { parseRobots } from '../../../core/robots/robots.ts';
import { normalizeUrl } from '../../../core/url/url.ts';
import { originOf } from '../../../core/url/url-shape.ts';
import { loadHandlers } from '../../../job-file/load-handlers.ts';
import { isJobFile, type LoadedJob, storeCode } from '../../../job-file/load-job-file.ts';
import { completeSpec } from '../../../job-file/parse-job.ts';
import type { Store } from '../../../ports/store.ts';
import { explainPage, type PageExplanation } from '../../../reparse/explain-page.ts';
import { formatAmount, formatBytes, formatDuration } from '../../../tui/format.ts';
import { compileJob } from '../../../worker/compile-job.ts';
import { readPage } from '../../../worker/storage/read-page.ts';
import { type Command, type Context, print, printable, printJson, withFolder } from '../../context.ts';
import { productOf } from '../jobs/hosts.ts';
import { jobFromCommandLine } from '../run/job-from-flags.ts';

/** A page that takes longer is not waited for: its host may be unreachable, which a job would wait out. */
const PATIENCE_MS = 30_000;
const VALUE_SHOWN = 100;
const LINKS_SHOWN = 5;

/** What one page came to. */
interface Trial {
  url: string;
  state: TaskRow['state'];
  httpStatus: number | null;
  failureCode: string | null;
  failureDetail: string | null;
  contentType: string | null;
  bytes: number | null;
  route: string | null;
  records: Record<string, unknown>[];
  selectors: PageExplanation['selectors'];
  followed: { url: string; route: string | null; robots: 'allowed' | 'forbidden' }[];
  notFollowed: { url: string; reason: string }[];
  media: string[];
  /** Of the request, and of everything: robots.txt, the request, extraction. */
  requestMs: number | null;
  totalMs: number;
}

/** Fetches one page as the job would, in a folder of its own that is deleted, and shows what came of it. */
export const tryCommand: Command = async (context) => {
  const { loaded, url } = await chosen(context);
  const dir = await mkdtemp(join(tmpdir(), 'seine-try-'));
  try {
    const trial = await tryPage(context, loaded, url, dir);
    if (context.json) printJson(context, trial);
    else print(context.stdout, textOf(trial));
    return trial.state === 'done' || trial.state === 'unchanged' ? 'success' : 'dead-letters';
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
};

async function chosen(context: Context): Promise<{ loaded: LoadedJob; url: string }> {
  const [first, second] = context.parsed.args;
  if (first === undefined)
    throw new SeineError('nothing to try', { hint: 'pass a URL, or a job file and a URL' });
  if (second !== undefined && isHttpUrl(first))
    throw new SeineError('two URLs given, but only one page is fetched', {
      hint: 'pass a job file, and the URL of one of its pages',
    });
  const isName = !isHttpUrl(first) && !isJobFile(first);
  const loaded = isName
    ? await storedJob(context, first)
    : await jobFromCommandLine({ ...context, parsed: { ...context.parsed, args: [first] } });
  const url = second ?? firstUrlOf(loaded.spec);
  const target = normalizeUrl(url, null, loaded.spec.url);
  if (!target) throw new SeineError(`not an http(s) URL: ${url}`);
  return { loaded, url: target.url };
}

async function storedJob(context: Context, name: string): Promise<LoadedJob> {
  return withFolder(context, async ({ store, blobs }) => {
    const job = await requireJob(store, name);
    const handlers =
      job.bundle === null
        ? new Map()
        : await loadHandlers(blobs, job.bundle, withEnvironment(context.loaded.jobEnvironment));
    const code = job.bundle === null ? null : await blobs.read(job.bundle);
    return { spec: completeSpec(job.spec), handlers, code, file: job.file };
  });
}

function firstUrlOf({ sources }: JobSpec): string {
  for (const source of sources) if (typeof source === 'string' && isHttpUrl(source)) return source;
  throw new SeineError('the job starts from lists or sitemaps, so the page to try has to be named', {
    hint: 'seine try <job> <url>',
  });
}

async function tryPage(context: Context, loaded: LoadedJob, url: string, dir: string): Promise<Trial> {
  const spec = specOf(loaded.spec, url);
  // What goes wrong is part of what is shown.
  const logger = { ...context.settings.logger, info() {}, warn() {} };
  const settings: AppSettings = {
    ...context.settings,
    dir,
    workers: 1,
    threads: undefined,
    blobs: null,
    store: null,
    logger,
  };
  delete settings.dispatch;
  const folder = await openFolder(settings, { create: true, toWork: true });
  try {
    const code = await storeCode(folder.blobs, { spec, code: loaded.code, file: null });
    const { job } = await submitJob(folder.store, code, { fresh: true, now: Date.now() });
    const begun = performance.now();
    const run = await startRun(folder, folder.lock(), job, settings);
    const patience = spec.timeouts.taskMs + PATIENCE_MS;
    const timer = setTimeout(
      () => run.stop({ state: 'stopped', cause: 'limit', message: 'too slow' }),
      patience,
    );
    await run.result.finally(() => clearTimeout(timer));
    return await trialOf(folder, job.id, spec, loaded, performance.now() - begun);
  } finally {
    await folder.close();
  }
}

/** One request, no second attempt, and everything that is needed to look at the page afterwards. */
function specOf(spec: JobSpec, url: string): JobSpec {
  const { schedule: _, keepOpen: __, ...rest } = spec;
  return {
    ...rest,
    sources: [url],
    redirects: 'follow',
    archive: true,
    limits: { ...spec.limits, pages: 1, bytes: null, seconds: null },
    retry: { ...spec.retry, attempts: 1 },
  };
}

async function trialOf(
  folder: Folder,
  jobId: number,
  spec: JobSpec,
  loaded: LoadedJob,
  totalMs: number,
): Promise<Trial> {
  const { store, blobs } = folder;
  const tasks: TaskRow[] = [];
  for await (const task of store.views.tasks(jobId)) tasks.push(task);
  const task = tasks.find(({ depth }) => depth === 0)!;
  const records = [];
  for await (const { data } of store.views.records(jobId)) records.push(data);
  let requestMs: number | null = null;
  for await (const attempt of store.views.attempts(jobId)) requestMs = attempt.durationMs;
  const compiled = await compileJob(spec, loaded.handlers);
  const stored = task.archive ? await readPage(blobs, task.archive, { sha256: task.sha256 }) : null;
  const page = stored ? explainPage(stored, compiled) : null;
  const below = tasks.filter(({ depth }) => depth > 0);
  const media = below.filter(({ route }) => route !== null && isMedia(spec, route)).map(({ url }) => url);
  const found = below.filter(({ url }) => !media.includes(url));
  const known = new Set(tasks.map(({ url }) => url));
  const allows = await robotsOf(store, spec);
  const routeOf = ({ url, route }: TaskRow) =>
    route ?? compiled.routes.find(({ matches }) => matches(url))?.name ?? null;
  const followed = [];
  for (const each of found) {
    const robots = (await allows(each.url)) ? ('allowed' as const) : ('forbidden' as const);
    followed.push({ url: each.url, route: routeOf(each), robots });
  }
  return {
    url: stored?.url ?? task.url,
    state: task.state,
    httpStatus: task.httpStatus,
    failureCode: task.failureCode,
    failureDetail: task.failureDetail,
    contentType: task.contentType ?? page?.contentType ?? null,
    bytes: task.bytes,
    // A page that failed has a route as well.
    route: page?.route ?? routeOf(task),
    records,
    selectors: page?.selectors ?? [],
    followed,
    notFollowed: (page?.links ?? [])
      .filter(({ url }) => !known.has(url))
      .map(({ url, reason }) => ({ url, reason: reason ?? 'is known already' })),
    media,
    requestMs,
    totalMs: Math.round(totalMs),
  };
}

const isMedia = (spec: JobSpec, name: string) =>
  name.startsWith('@media') || spec.routes.some((route) => route.name === name && route.kind === 'media');

/** Only of the page's own origin is robots.txt known; others are asked when their turn comes. */
async function robotsOf(store: Store, spec: JobSpec): Promise<(url: string) => Promise<boolean>> {
  const product = productOf(spec);
  return async (url) => {
    const entry = spec.politeness.robots ? await store.hosts.robots(originOf(url)) : null;
    return entry?.text ? parseRobots(entry.text, product).allows(url) : true;
  };
}

function textOf(trial: Trial): string {
  const { url, state, failureCode, failureDetail, httpStatus, contentType, bytes, route } = trial;
  const status = httpStatus === null ? 'no answer' : String(httpStatus);
  const size = bytes === null ? [] : [formatBytes(bytes)];
  const about = [status, ...(contentType === null ? [] : [contentType]), ...size, `route ${route ?? 'none'}`];
  const lines = [
    printable(url),
    `  ${printable(about.join(', '))}`,
    ...(state === 'done'
      ? []
      : [`  ${state}: ${printable([failureCode, failureDetail].filter(Boolean).join(': '))}`]),
    ...recordLines(trial),
    ...selectorLines(trial.selectors),
    ...(state === 'done' ? linkLines(trial) : []),
    `timing: ${trial.requestMs === null ? 'no request' : `request ${formatDuration(trial.requestMs)}`}, in all ${formatDuration(trial.totalMs)}`,
    '',
  ];
  return lines.join('\n');
}

function recordLines({ records, state }: Trial): string[] {
  if (records.length === 0) return state === 'done' ? ['record: none'] : [];
  return records.flatMap((data, index) => [
    records.length === 1 ? 'record' : `record ${index + 1} of ${records.length}`,
    ...Object.entries(data).map(
      ([field, value]) => `  ${printable(field)}: ${shortened(JSON.stringify(value))}`,
    ),
  ]);
}

function selectorLines(selectors: Trial['selectors']): string[] {
  if (selectors.length === 0) return [];
  const width = Math.max(...selectors.map(({ field }) => field.length));
  const rows = selectors.map(({ field, selector, matches, first }) => {
    const count =
      matches === null
        ? 'not a selector'
        : matches === 0
          ? 'no match'
          : formatAmount(matches, 'match', 'matches');
    const text = first === null ? '' : `, first ${shortened(JSON.stringify(first))}`;
    return `  ${printable(field.padEnd(width))}  ${printable(selector)}: ${count}${text}`;
  });
  return ['selectors', ...rows];
}

function linkLines({ followed, notFollowed, media }: Trial): string[] {
  const allowed = followed.filter(({ robots }) => robots === 'allowed');
  const forbidden = followed.filter(({ robots }) => robots === 'forbidden');
  const groups = new Map<string, string[]>();
  for (const { url, reason } of notFollowed) groups.set(reason, [...(groups.get(reason) ?? []), url]);
  if (forbidden.length > 0)
    groups.set(
      'is forbidden by robots.txt',
      forbidden.map(({ url }) => url),
    );
  const total = allowed.length + notFollowed.length + forbidden.length;
  return [
    `links: ${formatAmount(total, 'link')}, ${allowed.length} would be followed`,
    ...listed(allowed.map(({ url, route }) => `${url}${route === null ? '' : ` (${route})`}`)),
    ...[...groups].flatMap(([reason, urls]) => [
      `  not followed, ${printable(reason)}: ${urls.length}`,
      ...listed(urls),
    ]),
    ...(media.length > 0
      ? [`media: ${formatAmount(media.length, 'file')} would be stored`, ...listed(media)]
      : []),
  ];
}

function listed(urls: readonly string[]): string[] {
  const more = urls.length - LINKS_SHOWN;
  const shown = urls.slice(0, LINKS_SHOWN).map((url) => `    ${printable(url)}`);
  return more > 0 ? [...shown, `    … and ${more} more: --json shows all`] : shown;
}

function shortened(text: string | undefined): string {
  const clean = printable(text ?? 'null');
  return clean.length > VALUE_SHOWN ? `${clean.slice(0, VALUE_SHOWN - 1)}…` : clean;
}
