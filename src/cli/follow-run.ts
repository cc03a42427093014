import { type Run, startRun } from '../app.ts';
import { qualityOf } from '../coordinator/job-quality.ts';
import { summarize } from '../coordinator/jobs.ts';
import type { RouteQuality, RunView } from '../coordinator/run-view.ts';
import type { ExitName } from '../core/errors.ts';
import type { Folder } from '../folder.ts';
import type { Job } from '../ports/store.ts';
import type { FolderLock } from '../store/sqlite/folder-lock.ts';
import { openDashboard } from '../tui/dashboard.ts';
import { renderSummary } from '../tui/summary.ts';
import { type Context, printable, printJson } from './context.ts';

const VIEW_MS = 200;

/** Runs a job with a dashboard until it ends, and says how it ended. */
export async function followRun(
  context: Context,
  folder: Folder,
  lock: FolderLock,
  job: Job,
): Promise<ExitName> {
  const run = await startRun(folder, lock, job, context.settings);
  const signals = watchSignals(run);
  let view = await run.view();
  let isLooking = false;
  const refresh = async () => {
    // While the store does not answer, one question is enough.
    if (isLooking) return;
    isLooking = true;
    try {
      view = await run.view();
    } finally {
      isLooking = false;
    }
  };
  // Whatever goes wrong with the store, the run itself will say.
  const timer = setInterval(() => void refresh().catch(() => {}), VIEW_MS);
  const dashboard = context.json
    ? null
    : openDashboard({ output: context.stderr, view: () => view, env: process.env });
  try {
    const result = await run.result;
    clearInterval(timer);
    const last = await run.view();
    view = { ...last, job: { ...last.job, state: result.state } };
    dashboard?.close();
    const { text, exit } = judge(result);
    if (context.json)
      await printResult(context, folder, job, result.rejects.length > 0 ? result.rejects : undefined);
    else {
      const quality = await qualityOf(folder.store, job);
      context.stderr.write(closingText(view, job, text, result, quality));
    }
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

function closingText(
  view: RunView,
  job: Job,
  ended: string | null,
  result: Awaited<Run['result']>,
  quality: RouteQuality[],
): string {
  const lines = [renderSummary(view, { quality })];
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
