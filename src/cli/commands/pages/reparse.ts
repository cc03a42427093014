import { type Folder, openFolder } from '../../../app/folder.ts';
import { AWS_ITSELF, openCredentials } from '../../../aws/s3/s3-client.ts';
import { hideEnvironment } from '../../../config/load.ts';
import { requireJob } from '../../../coordinator/jobs.ts';
import { SeineError } from '../../../core/errors.ts';
import { openSystemResolver } from '../../../fetch/network/system-resolver.ts';
import { asItIs, loadHandlers } from '../../../job-file/load-handlers.ts';
import { isJobFile, type LoadedJob, loadJobFile, storeCode } from '../../../job-file/load-job-file.ts';
import { parseJob } from '../../../job-file/parse-job.ts';
import type { Job } from '../../../ports/store.ts';
import type { FieldChange } from '../../../reparse/record-diff.ts';
import { type ReparseResult, reparse } from '../../../reparse/reparse.ts';
import { formatCount } from '../../../tui/format.ts';
import { compileJob } from '../../../worker/compile-job.ts';
import type { CompiledJob } from '../../../worker/job/compiled-job.ts';
import { type Command, type Context, print, printable, printJson } from '../../context.ts';
import { nextCommand } from '../../program-name.ts';
import { toNumber } from '../run/job-from-flags.ts';

const PROGRESS_MS = 200;
const FIELDS_SHOWN = 20;
const VALUE_SHOWN = 60;

/** Runs today's code over the pages of a job, without a request, and says what changed. */
export const reparseCommand: Command = async (context) => {
  const { values } = context.parsed;
  const dryRun = values['dry-run'] === 'true';
  const limit = values.limit === undefined ? null : toNumber('--limit', values.limit);
  const { job, origin, result } = await reparseArchive(context, { dryRun, limit });
  show(context, job, origin, dryRun, result);
  return result.failed > 0 ? 'dead-letters' : 'success';
};

interface Reparsed {
  job: Job;
  /** Where the code came from. */
  origin: string;
  result: ReparseResult;
}

export async function reparseArchive(
  context: Context,
  { dryRun, limit }: { dryRun: boolean; limit: number | null },
): Promise<Reparsed> {
  return withArchive(context, { toWork: !dryRun, args: context.parsed.args }, async (work) => {
    const { job, code, origin, loaded, folder } = work;
    if (!code.routes.some((route) => route.read || route.findMedia))
      throw new SeineError(`${origin} extracts no records or media from pages`, {
        hint: 'see docs/jobs.md, Routes',
      });
    const lock = dryRun ? null : folder.lock();
    const newest = await folder.store.jobs.find(job.name);
    const progress = openProgress(context);
    try {
      const result = await reparse({
        store: folder.store,
        blobs: folder.blobs,
        job,
        isNewest: newest?.id === job.id,
        code,
        dryRun,
        limit,
        now: Date.now(),
        resolver: openSystemResolver(),
        onPage: progress.onPage,
      });
      if (loaded && !dryRun && limit === null) await adoptCode(folder, job, loaded);
      return { job, origin, result };
    } finally {
      progress.close();
      lock?.release();
    }
  });
}

/** A job of the folder, with its archive and today's code for it. */
export interface ArchiveWork {
  folder: Folder;
  store: Folder['store'];
  blobs: Folder['blobs'];
  job: Job;
  code: CompiledJob;
  /** Where the code came from. */
  origin: string;
  loaded: LoadedJob | null;
}

/** `args`: a job, a job file, or both. `toWork`: whether it writes. */
export async function withArchive<T>(
  context: Context,
  { toWork, args }: { toWork: boolean; args: readonly string[] },
  work: (work: ArchiveWork) => Promise<T>,
): Promise<T> {
  // The code of the job runs in this process, so only what opens connections has the whole environment.
  const withWhole = hideEnvironment(context.loaded.jobEnvironment);
  const find = openCredentials();
  const s3 = { ...(context.settings.s3 ?? AWS_ITSELF), credentials: () => withWhole(find) };
  const settings = { ...context.settings, s3 };
  const folder = await withWhole(() => openFolder(settings, { create: false, toWork }));
  try {
    const { store, blobs } = folder;
    return await work({ folder, store, blobs, ...(await chooseJob(args, folder)) });
  } finally {
    await folder.close();
  }
}

/** The job, and today's code for it: of the file that is named, of the file it was run from, or as it was stored. */
async function chooseJob(
  [first, second]: readonly string[],
  folder: Folder,
): Promise<{ job: Job; code: CompiledJob; origin: string; loaded: LoadedJob | null }> {
  const named = second ?? (first !== undefined && isJobFile(first) ? first : null);
  const given = named === null ? null : await loadJobFile(named, asItIs);
  const job = await requireJob(folder.store, given && named === first ? given.spec.name : (first ?? null));
  const loaded = given ?? (job.file === null ? null : await loadJobFile(job.file, asItIs));
  if (loaded) {
    const code = await compileJob(loaded.spec, loaded.handlers);
    return { job, code, origin: named ?? job.file!, loaded };
  }
  const handlers = job.bundle === null ? new Map() : await loadHandlers(folder.blobs, job.bundle, asItIs);
  // Fills in what jobs could not say when it was run.
  const { spec } = await parseJob(job.spec, `${job.name}-${job.run}`, job.name, handlers);
  const code = await compileJob(spec, handlers);
  return { job, code, origin: 'the stored job definition', loaded };
}

/** What is left to visit is read like the rest: with the routes of today, under the limits that the run was given. */
async function adoptCode(folder: Folder, job: Job, loaded: LoadedJob): Promise<void> {
  const { routes, records, media } = loaded.spec;
  const names = new Set<string | undefined>([undefined, ...routes.map(({ name }) => name)]);
  const rulesFit = job.spec.follow.every(({ route, from }) => names.has(route) && names.has(from));
  const follow = rulesFit ? job.spec.follow : loaded.spec.follow;
  const spec = { ...job.spec, routes, records, media, follow };
  await folder.store.jobs.update(job.id, await storeCode(folder.blobs, { ...loaded, spec }));
}

function show(context: Context, job: Job, origin: string, dryRun: boolean, result: ReparseResult): void {
  const id = `${job.name}-${job.run}`;
  if (context.json) {
    printJson(context, { job: job.name, run: job.run, id, dryRun, ...result });
    return;
  }
  const { pages, failed, unreadable, lifted, links, media, records, fields, troubles } = result;
  const lines = [
    `${id}: ${counted(pages, 'page')} parsed again with ${origin}${dryRun ? '; nothing was written' : ''}`,
    `  records: ${formatCount(records.same)} same, ${formatCount(records.changed)} changed, ${formatCount(records.new)} new, ${formatCount(records.gone)} gone`,
    ...fields.slice(0, FIELDS_SHOWN).flatMap(fieldLines),
    ...(fields.length > FIELDS_SHOWN ? [`  … ${fields.length} fields in total; --json shows all`] : []),
    ...(lifted > 0
      ? [`  ${counted(lifted, 'dead letter')} ${dryRun ? 'would be' : lifted === 1 ? 'is' : 'are'} done now`]
      : []),
    ...(links > 0 ? [`  ${counted(links, 'new link')} on these pages`] : []),
    ...(media > 0 ? [`  ${counted(media, 'new media file')} found`] : []),
    ...(links + media > 0 ? [`  next: ${nextCommand(context.parsed.values, `resume ${job.name}`)}`] : []),
    ...(failed > 0 ? [`  ${counted(failed, 'page')} not parsed`] : []),
    ...(unreadable > 0 ? [`  ${counted(unreadable, 'page')} could not be read and did not change`] : []),
    ...troubles.map(({ url, code, detail }) => `    ${printable(`${url}: ${code}: ${detail}`)}`),
  ];
  print(context.stdout, `${lines.join('\n')}\n`);
}

export function fieldLines({ field, added, removed, changed, samples }: FieldChange): string[] {
  const counts = Object.entries({ added, removed, changed }).filter(([, count]) => count > 0);
  return [
    `  ${printable(field)}: ${counts.map(([kind, count]) => `${formatCount(count)} ${kind}`).join(', ')}`,
    ...samples.map(({ before, after }) => `    ${shortened(before)} → ${shortened(after)}`),
  ];
}

function shortened(value: unknown): string {
  const text = printable(JSON.stringify(value));
  return text.length > VALUE_SHOWN ? `${text.slice(0, VALUE_SHOWN - 1)}…` : text;
}

export function counted(count: number, word: string): string {
  return `${formatCount(count)} ${word}${count === 1 ? '' : 's'}`;
}

/** One line that is written over, and only for people. */
function openProgress({ stderr, json }: Context): { onPage(pages: number): void; close(): void } {
  if (json || !stderr.isTTY) return { onPage() {}, close() {} };
  let shownAt = 0;
  return {
    onPage(pages) {
      const now = performance.now();
      if (now - shownAt < PROGRESS_MS) return;
      shownAt = now;
      stderr.write(`\r\u001b[K${counted(pages, 'page')} parsed again`);
    },
    close() {
      if (shownAt > 0) stderr.write('\r\u001b[K');
      shownAt = 0;
    },
  };
}
