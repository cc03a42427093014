import { type Prepared, type Run, startRun } from '../../app/app.ts';
import type { Folder } from '../../app/folder.ts';
import { type JobSummary, summarize } from '../../coordinator/jobs.ts';
import { type ContactSheet, writeContactSheet } from '../../coordinator/reports/contact-sheet.ts';
import type { RunView } from '../../coordinator/reports/run-view.ts';
import { judgeSources, type SourcesVerdict } from '../../coordinator/sources/check-sources.ts';
import type { ExitName } from '../../core/errors.ts';
import { mayRender } from '../../core/escalation/escalation.ts';
import type { DispatchCost } from '../../ports/dispatcher.ts';
import type { Job } from '../../ports/store.ts';
import type { FolderLock } from '../../store/sqlite/connection/folder-lock.ts';
import { openDashboard } from '../../tui/dashboard.ts';
import { formatCount } from '../../tui/format.ts';
import { renderSummary } from '../../tui/summary.ts';
import { type Context, printable, printJson } from '../context.ts';
import { earlierPassOf } from './reports.ts';
import { watchSignals } from './watch-signals.ts';

const VIEW_MS = 200;
const REJECTS_SHOWN = 5;

/** What is told of a run at its end. */
export type RunEnd = Awaited<Run['result']>;

/** Runs a job with a dashboard until it ends, and says how it ended. */
export async function followRun(
  context: Context,
  folder: Folder,
  lock: FolderLock,
  job: Job,
  prepared: Prepared = {},
): Promise<ExitName> {
  const run = await startRun(folder, lock, job, context.settings, prepared);
  const signals = watchSignals({ secondExits: true });
  void signals.first.then(() =>
    run.stop({ state: 'stopped', cause: 'signal', message: 'stopped by a signal' }),
  );
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
  const timer = context.json ? undefined : setInterval(() => void refresh().catch(() => {}), VIEW_MS);
  const dashboard = context.json
    ? null
    : await openDashboard({ output: context.stderr, view: () => view, env: process.env });
  try {
    const result = await run.result;
    clearInterval(timer);
    const last = await run.view();
    view = { ...last, job: { ...last.job, state: result.state } };
    dashboard?.close();
    return await tellEnd(context, folder, job, view, result);
  } finally {
    clearInterval(timer);
    dashboard?.close();
    signals.close();
  }
}

/** Says how a run ended, on the screen or as JSON, and as an exit code. */
export async function tellEnd(
  context: Context,
  folder: Folder,
  job: Job,
  view: RunView,
  result: RunEnd,
): Promise<ExitName> {
  const { text, exit } = judge(result);
  const sources = await judgeSources(folder.store, job);
  const summary = await summarize(folder.store, await folder.store.jobs.get(job.id), { alive: false });
  const sheet = job.spec.routes.some(mayRender) ? await writeContactSheet(folder, job) : null;
  if (context.json) printResult(context, folder, summary, result, sources, sheet);
  else {
    context.stderr.write(closingText(view, job, text, result, summary, sources));
    if (sheet) context.stderr.write(`screenshots: ${printable(sheet.place)}\n`);
  }
  return sources.useless && result.state === 'done' ? 'bad-input' : exit;
}

/** How a run ended, in words and as an exit code. A limit that was reached is a success. */
function judge({ state, stop, counters }: RunEnd): { text: string | null; exit: ExitName } {
  if (state === 'done') return { text: null, exit: counters.dead > 0 ? 'dead-letters' : 'success' };
  if (stop?.cause === 'breaker')
    return { text: `stopped: ${stop.message}; \`seine resume\` continues it`, exit: 'breaker' };
  if (stop?.cause === 'limit')
    return { text: `stopped: ${stop.message}`, exit: counters.dead > 0 ? 'dead-letters' : 'success' };
  return {
    text: state === 'cancelled' ? 'was cancelled' : 'stopped; `seine resume` continues it',
    exit: 'interrupted',
  };
}

function printResult(
  context: Context,
  folder: Folder,
  summary: JobSummary,
  { rejects, rejectsFile, cost }: RunEnd,
  { useless }: SourcesVerdict,
  sheet: ContactSheet | null,
): void {
  printJson(context, {
    ...summary,
    dir: folder.dir,
    ...(rejects.length > 0 ? { rejects, rejectsFile } : {}),
    ...(cost ? { cost } : {}),
    ...(useless ? { error: useless } : {}),
    ...(sheet ? { sheet: sheet.place } : {}),
  });
}

function closingText(
  view: RunView,
  job: Job,
  ended: string | null,
  { rejects, rejectsFile, counters, cost }: RunEnd,
  summary: JobSummary,
  sources: SourcesVerdict,
): string {
  const { quality } = summary;
  const lines = [renderSummary(view, { quality, qualityPass: earlierPassOf(summary) })];
  if (ended !== null) lines.push(printable(`${job.name}-${job.run} ${ended}`));
  for (const reject of rejects.slice(0, REJECTS_SHOWN))
    lines.push(`  rejected: ${printable(`${reject.source}, ${reject.place}: ${reject.reason}`)}`);
  const rejected = summary.thisPass?.rejected ?? summary.rejected;
  if (rejects.length > REJECTS_SHOWN)
    lines.push(`  … ${formatCount(rejected)} rows in total; see ${printable(String(rejectsFile))}`);
  if (cost) lines.push(costLine(cost));
  if (sources.empty) lines.push(printable(sources.empty));
  if (sources.useless) lines.push(printable(`error: ${sources.useless}`));
  if (counters.dead > 0) lines.push(`next: seine dead ${job.name}`);
  return `${lines.join('\n')}\n`;
}

function costLine({ invocations, gbSeconds, usd }: DispatchCost): string {
  return `cost: ${formatCount(invocations)} invocations, ${gbSeconds.toFixed(1)} GB-seconds, about ${usd.toFixed(4)} USD`;
}
