import { type Run, startRun } from '../app.ts';
import { isResumable, requireJob, submitJob, summarize } from '../coordinator/jobs.ts';
import type { RunView } from '../coordinator/run-view.ts';
import { type ExitName, SeineError } from '../core/errors.ts';
import { type Folder, openFolder } from '../folder.ts';
import { bundleKeyOf } from '../job/load-handlers.ts';
import { hashOfSpec } from '../job/parse-job.ts';
import type { Job } from '../ports/store.ts';
import { openSource } from '../sources/open-source.ts';
import { type FolderLock, lockFolder } from '../store/sqlite/folder-lock.ts';
import { openDashboard } from '../tui/dashboard.ts';
import { renderSummary } from '../tui/summary.ts';
import { type Context, printable, printJson } from './context.ts';
import { jobFromCommandLine, toNumber } from './job-from-flags.ts';

const VIEW_MS = 200;

export async function runCommand(context: Context): Promise<ExitName> {
  const loaded = await jobFromCommandLine(context);
  const dryRun = context.parsed.values['dry-run'] === 'true';
  for (const source of loaded.spec.sources) {
    // A dry run leaves standard input unread.
    if (!(dryRun && typeof source !== 'string' && source.file === '-')) openSource(source);
  }
  if (dryRun) {
    context.stdout.write(`${JSON.stringify(loaded.spec, null, 2)}\n`);
    return 'success';
  }
  const folder = await openFolder(context.settings, { create: true, toWork: true });
  try {
    const bundle = loaded.code ? bundleKeyOf(loaded.code) : null;
    if (bundle) await folder.blobs.put(bundle, loaded.code!);
    const specHash = hashOfSpec(loaded.spec, bundle);
    // Before anything is written down: a refused run must leave no job behind.
    const lock = lockFolder(folder.dir);
    const fresh = context.parsed.values.fresh === 'true';
    const { job, resumed } = await submitJob(
      folder.store,
      { spec: loaded.spec, specHash, bundle },
      { fresh, now: Date.now() },
    );
    if (resumed && !context.json)
      context.stderr.write(
        `continuing ${job.name}-${job.run}, which was not finished (--fresh starts anew)\n`,
      );
    return await follow(context, folder, lock, job);
  } finally {
    await folder.close();
  }
}

export async function resumeCommand(context: Context): Promise<ExitName> {
  const folder = await openFolder(context.settings, { create: false, toWork: true });
  try {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    if (job.state === 'cancelled') {
      throw new SeineError(`${job.name}-${job.run} was cancelled`, {
        hint: 'start it anew with `seine run`',
      });
    }
    const counters = await folder.store.jobs.counters(job.id);
    if (!isResumable(job.state) && counters.pending + counters.leased === 0) {
      throw new SeineError(`${job.name}-${job.run} is ${job.state}: nothing is left to do`, {
        hint: 'start it anew with `seine run`',
      });
    }
    const lock = lockFolder(folder.dir);
    return await follow(context, folder, lock, await withNewLimits(context, folder, job));
  } finally {
    await folder.close();
  }
}

/** A job that stopped at a limit goes on with a larger one. */
async function withNewLimits(context: Context, folder: Folder, job: Job): Promise<Job> {
  const { values } = context.parsed;
  const limits = { ...job.spec.limits };
  if (values['max-pages']) limits.pages = toNumber('--max-pages', values['max-pages']);
  if (values['max-seconds']) limits.seconds = toNumber('--max-seconds', values['max-seconds']);
  if (values['max-bytes']) limits.bytes = toNumber('--max-bytes', values['max-bytes']);
  const spec = { ...job.spec, limits };
  await folder.store.jobs.update(job.id, { spec });
  return { ...job, spec };
}

/** Runs a job with a dashboard until it ends, and says how it ended. */
async function follow(context: Context, folder: Folder, lock: FolderLock, job: Job): Promise<ExitName> {
  const run = await startRun(folder, lock, job, context.settings);
  const signals = watchSignals(run);
  let view = await run.view();
  const refresh = async () => {
    view = await run.view();
  };
  const timer = setInterval(() => void refresh(), VIEW_MS);
  const dashboard = context.json
    ? null
    : openDashboard({ output: context.stderr, view: () => view, env: process.env });
  try {
    const result = await run.result;
    clearInterval(timer);
    await refresh();
    view = { ...view, job: { ...view.job, state: result.state } };
    dashboard?.close();
    const { text, exit } = judge(result);
    if (context.json)
      await printResult(context, folder, job, result.rejects.length > 0 ? result.rejects : undefined);
    else context.stderr.write(closingText(view, job, text, result));
    return exit;
  } finally {
    clearInterval(timer);
    dashboard?.close();
    signals.close();
  }
}

/** How a run ended, in words and as an exit code. A limit that was reached is a success. */
function judge({ state, stop, counters }: Awaited<Run['result']>): { text: string | null; exit: ExitName } {
  if (state === 'done') return { text: null, exit: counters.dead > 0 ? 'dead-letters' : 'success' };
  if (stop?.cause === 'breaker')
    return { text: `stopped: ${stop.message}; \`seine resume\` continues`, exit: 'breaker' };
  if (stop?.cause === 'limit')
    return { text: `stopped: ${stop.message}`, exit: counters.dead > 0 ? 'dead-letters' : 'success' };
  return {
    text: state === 'cancelled' ? 'was cancelled' : 'stopped; `seine resume` continues',
    exit: 'interrupted',
  };
}

async function printResult(context: Context, folder: Folder, job: Job, rejects?: unknown): Promise<void> {
  const summary = await summarize(folder.store, await folder.store.jobs.get(job.id), { alive: false });
  printJson(context, { ...summary, dir: folder.dir, ...(rejects ? { rejects } : {}) });
}

function closingText(view: RunView, job: Job, ended: string | null, result: Awaited<Run['result']>): string {
  const lines = [renderSummary(view)];
  if (ended !== null) lines.push(`${job.name}-${job.run} ${ended}`);
  const { rejected, dead } = result.counters;
  for (const reject of result.rejects.slice(0, 5))
    lines.push(`  not read: ${printable(`${reject.source}, ${reject.place}: ${reject.reason}`)}`);
  if (rejected > 5) lines.push(`  … ${rejected} rows could not be read in all`);
  if (dead > 0) lines.push(`next: seine dead ${job.name}`);
  return `${lines.join('\n')}\n`;
}

/** The first signal stops gently, the second at once. */
function watchSignals(run: Run): { close(): void } {
  let count = 0;
  const onSignal = () => {
    count++;
    if (count > 1) process.exit(130);
    run.stop({ state: 'stopped', cause: 'signal', message: 'stopped by a signal' });
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    close() {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    },
  };
}
