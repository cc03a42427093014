import { checkSink, checkSources, openJobAccess, openServices } from '../../../app/app.ts';
import { type Folder, openFolder } from '../../../app/folder.ts';
import { checkCommands } from '../../../app/notify.ts';
import { attachQuote } from '../../../coordinator/forecast/quote.ts';
import { isResumable, requireJob, type SubmittedJob, submitJob } from '../../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import type { SourceSpec } from '../../../core/job-schema/job.ts';
import { changeText } from '../../../core/job-schema/job-change.ts';
import { storeCode } from '../../../job-file/load-job-file.ts';
import type { Dispatcher } from '../../../ports/dispatcher.ts';
import type { Job, JobCode } from '../../../ports/store.ts';
import type { ServerFile } from '../../../server/server-file.ts';
import type { FolderLock } from '../../../store/sqlite/connection/folder-lock.ts';
import type { Context } from '../../context.ts';
import { print, printable } from '../../context.ts';
import { serverOf } from '../../folder-server.ts';
import { describeRun } from './dry-run.ts';
import { failOnOf, followRun } from './follow-run.ts';
import { followServed } from './follow-served.ts';
import { dryForecast } from './forecast.ts';
import { jobFromCommandLine } from './job-from-flags.ts';
import { keepSchedule } from './keep-schedule.ts';
import { meansJobByName, refreshCommand, withNewLimits } from './refresh.ts';
import { watchSignals } from './watch-signals.ts';

export async function runCommand(context: Context): Promise<ExitName> {
  if (await meansJobByName(context)) return refreshCommand(context);
  const loaded = await jobFromCommandLine(context);
  const { spec } = loaded;
  // Standard input is read once, by the run itself.
  const readable = spec.sources.filter((source) => !isStandardInput(source));
  await checkSources(readable, context.settings, null, spec);
  await openJobAccess(spec, context.settings);
  checkCommands(loaded, context.settings);
  if (context.parsed.values['dry-run'] === 'true') {
    const forecast =
      readable.length === 0 ? null : await dryForecast(context, { ...spec, sources: readable });
    await describeRun(context, loaded, forecast);
    return 'success';
  }
  failOnOf(context);
  if (context.parsed.values.watch === 'true' && !spec.schedule)
    throw new SeineError('--watch needs a schedule', { hint: "add one to the job: schedule: '0 3 * * *'" });
  const folder = await openFolder(context.settings, { create: true, toWork: true });
  try {
    const queries = spec.sources.filter((source) => typeof source !== 'string' && 'query' in source);
    await checkSources(queries, context.settings, folder.store);
    await checkSink(folder, spec);
    const code = await storeCode(folder.blobs, loaded);
    const server = await serverOf(folder);
    // The server has its own.
    if (server) await context.threads?.close();
    return server ? await runAtServer(context, folder, code, server) : await runHere(context, folder, code);
  } finally {
    await folder.close();
  }
}

function isStandardInput(source: SourceSpec): boolean {
  return typeof source !== 'string' && 'file' in source && source.file === '-';
}

/** The folder has a server: it works on the job, and this process only shows how. */
async function runAtServer(
  context: Context,
  folder: Folder,
  code: JobCode,
  server: ServerFile,
): Promise<ExitName> {
  const { job } = await submit(context, folder, code);
  if (context.parsed.values.ui !== undefined) print(context.stderr, `dashboard: ${server.url}\n`);
  return await followServed(context, folder, server, job);
}

async function runHere(context: Context, folder: Folder, code: JobCode): Promise<ExitName> {
  // Before anything is written down: a refused run must leave no job behind.
  const lock = folder.lock();
  const dispatcher = await openServices(folder, code.spec, context.settings, {
    threads: context.threads,
  }).catch((error: unknown) => {
    lock.release();
    throw error;
  });
  const { job } = await submit(context, folder, code, () => dispatcher.close());
  if (context.parsed.values.watch === 'true')
    return await followAndStay(context, folder, { lock, job, dispatcher });
  return await followRun(context, folder, lock, job, { dispatcher });
}

/** Writes the job down and says whether that goes on with a run. */
async function submit(
  context: Context,
  { store }: Folder,
  code: JobCode,
  onRefused?: () => Promise<void>,
): Promise<SubmittedJob> {
  const { fresh, refresh } = context.parsed.values;
  const how = { fresh: fresh === 'true', refresh: refresh === 'true', now: Date.now() };
  const submitted = await submitJob(store, code, how).catch(async (error: unknown) => {
    await onRefused?.();
    throw error;
  });
  await attachQuote(store, submitted.job, Date.now());
  if (!context.json) print(context.stderr, startText(submitted));
  return submitted;
}

/** Whether a run goes on or a new one starts, where that may not be what was expected. */
function startText({ job, resumed, changes, replaced }: SubmittedJob): string {
  const name = `${job.name}-${job.run}`;
  const lines: string[] = [];
  if (resumed) lines.push(`continuing ${name}, which was not finished (--fresh starts a new run)`);
  lines.push(...changes.map((change) => `  ${changeText(change)}`));
  if (replaced) {
    const last = `${replaced.job.name}-${replaced.job.run}`;
    lines.push(
      `starting the new run ${name}, because the job has changed: ${replaced.changes.join(', ')}`,
      `  ${last} was not finished; \`seine resume ${last}\` continues it`,
    );
  }
  return lines.map((line) => `${printable(line)}\n`).join('');
}

async function followAndStay(
  context: Context,
  folder: Folder,
  { lock, job, dispatcher }: { lock: FolderLock; job: Job; dispatcher: Dispatcher },
): Promise<ExitName> {
  // The run has its own watch; this one must notice a signal that comes at the run's very end.
  const signals = watchSignals({ secondExits: false });
  try {
    const exit = await followRun(context, folder, lock, job, { dispatcher });
    return exit === 'interrupted' ? exit : await keepSchedule(context, folder, job.name, signals);
  } finally {
    signals.close();
  }
}

export async function resumeCommand(context: Context): Promise<ExitName> {
  const folder = await openFolder(context.settings, { create: false, toWork: true });
  try {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    if (job.state === 'cancelled') {
      throw new SeineError(`${job.name}-${job.run} was cancelled`, {
        hint: 'start a new run with `seine run`',
      });
    }
    const counters = await folder.store.jobs.counters(job.id);
    if (!isResumable(job.state) && counters.pending + counters.leased === 0) {
      throw new SeineError(`${job.name}-${job.run} is ${job.state}: nothing left to do`, {
        hint: 'start a new run with `seine run`',
      });
    }
    const server = await serverOf(folder);
    if (server) return await followServed(context, folder, server, await withNewLimits(context, folder, job));
    const lock = folder.lock();
    return await followRun(context, folder, lock, await withNewLimits(context, folder, job));
  } finally {
    await folder.close();
  }
}
