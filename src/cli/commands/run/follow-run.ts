import { type Prepared, type Run, startRun } from '../../../app/app.ts';
import type { Folder } from '../../../app/folder.ts';
import { notifyEnd } from '../../../app/notify.ts';
import { askToRun, type JobSummary, summarize } from '../../../coordinator/jobs.ts';
import { type ContactSheet, writeContactSheet } from '../../../coordinator/reports/contact-sheet.ts';
import { receiptOf } from '../../../coordinator/reports/receipt.ts';
import type { RunView } from '../../../coordinator/reports/run-view.ts';
import { judgeSources, type SourcesVerdict } from '../../../coordinator/sources/check-sources.ts';
import type { Receipt } from '../../../core/cost/receipt.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import { mayRender } from '../../../core/escalation/escalation.ts';
import { problemsOf, RUN_PROBLEMS, type RunProblem } from '../../../core/record-changes/run-problems.ts';
import { suggestion } from '../../../core/text/nearest-name.ts';
import { jobMetrics } from '../../../observe/metrics/job-metrics.ts';
import { slotMetrics } from '../../../observe/metrics/slot-metrics.ts';
import type { Metric } from '../../../observe/metrics/text-format.ts';
import type { DispatchCost } from '../../../ports/dispatcher.ts';
import type { Job } from '../../../ports/store.ts';
import type { HttpServer } from '../../../server/http-server.ts';
import type { FolderLock } from '../../../store/sqlite/connection/folder-lock.ts';
import { openDashboard } from '../../../tui/dashboard.ts';
import { formatAmount, formatCount, formatUsd } from '../../../tui/format.ts';
import { receiptLine } from '../../../tui/money.ts';
import { renderSummary } from '../../../tui/summary.ts';
import { type Context, print, printable, printJson } from '../../context.ts';
import { toListenAddress } from '../../listen-address.ts';
import { nextCommand, programName } from '../../program-name.ts';
import { earlierPassOf } from '../jobs/reports.ts';
import { withMetrics } from './serve-metrics.ts';
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
  failOnOf(context);
  await askToRun(folder.store, job);
  const run = await startRun(folder, lock, job, context.settings, prepared);
  try {
    return await followStarted(context, folder, job, run);
  } catch (error) {
    // A run that nothing follows any more must not outlive its folder.
    run.stop({ state: 'stopped', cause: 'request', message: 'the run could not be shown' });
    await run.result.catch(() => {});
    throw error;
  }
}

async function followStarted(context: Context, folder: Folder, job: Job, run: Run): Promise<ExitName> {
  const web = await openWebDashboard(context, folder, run);
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
  context.screen.print = dashboard ? (text) => dashboard.print(text) : null;
  try {
    const result = await withMetrics(
      context,
      () => runMetrics(folder, run),
      () => run.result,
    );
    clearInterval(timer);
    const last = await run.view();
    view = { ...last, job: { ...last.job, state: result.state } };
    dashboard?.close();
    return await tellEnd(context, folder, job, view, result, { notifies: true });
  } finally {
    clearInterval(timer);
    context.screen.print = null;
    dashboard?.close();
    signals.close();
    await web?.close();
  }
}

/** With `--ui`: the page of `seine serve` for this run alone. */
async function openWebDashboard(context: Context, folder: Folder, run: Run): Promise<HttpServer | null> {
  const { ui } = context.parsed.values;
  if (ui === undefined) return null;
  const { openReadOnlyServer } = await import('../../../server/read-only-server.ts');
  const listen = toListenAddress(ui, '--ui');
  const server = await openReadOnlyServer(folder, { listen, settings: context.settings, run });
  const text = context.json ? JSON.stringify({ dashboard: server.url }) : `dashboard: ${server.url}`;
  print(context.stderr, `${text}\n`);
  return server;
}

async function runMetrics({ store }: Folder, run: Run): Promise<Metric[]> {
  const { openBatches } = await run.view();
  const jobs = await jobMetrics(store, { now: Date.now() });
  return [...jobs, ...slotMetrics({ slots: run.slots(), busy: openBatches })];
}

/** Says how a run ended, on the screen or as JSON, and as an exit code. */
export async function tellEnd(
  context: Context,
  folder: Folder,
  job: Job,
  view: RunView,
  result: RunEnd,
  { notifies = false } = {},
): Promise<ExitName> {
  const sources = await judgeSources(folder.store, job);
  const receipt = await receiptOf(folder.store, await folder.store.jobs.get(job.id));
  const summary = await summarize(folder.store, await folder.store.jobs.get(job.id), { alive: false });
  const { text, exit } = judge(result, summary, failOnOf(context));
  const sheet = job.spec.routes.some(mayRender) ? await writeContactSheet(folder, job) : null;
  if (context.json) printResult(context, folder, summary, result, sources, sheet, receipt);
  else {
    context.stderr.write(
      closingText(context.parsed.values, view, job, text, result, summary, sources, receipt),
    );
    if (sheet) context.stderr.write(`screenshots: ${printable(sheet.place)}\n`);
  }
  if (notifies && exit !== 'interrupted') await notifyEnd(job, summary, context.settings);
  return sources.useless && result.state === 'done' ? 'bad-input' : exit;
}

/** What `--fail-on` names; dead letters alone without it. */
export function failOnOf({ parsed }: Context): RunProblem[] {
  const text = parsed.values['fail-on'] ?? 'dead';
  return text.split(',').map((part) => {
    const name = part.trim();
    const problem = RUN_PROBLEMS.find((each) => each === name);
    if (problem) return problem;
    throw new SeineError(`--fail-on: there is no '${name}'${suggestion(name, RUN_PROBLEMS)}`, {
      hint: `choose from ${RUN_PROBLEMS.join(', ')}`,
    });
  });
}

/** How a run ended, in words and as an exit code. A limit that was reached is a success. */
function judge(
  { state, stop }: RunEnd,
  summary: JobSummary,
  failOn: readonly RunProblem[],
): { text: string | null; exit: ExitName } {
  const problems = problemsOf(summary).filter((problem) => failOn.includes(problem));
  const exit = problems.some((problem) => problem !== 'dead')
    ? 'failed-check'
    : problems.length > 0
      ? 'dead-letters'
      : 'success';
  if (state === 'done') return { text: null, exit };
  if (state === 'waiting') return { text: `waits for more URLs; \`${programName()} add\` adds some`, exit };
  if (stop?.cause === 'breaker')
    return { text: `stopped: ${stop.message}; \`${programName()} resume\` continues it`, exit: 'breaker' };
  if (stop?.cause === 'limit') return { text: `stopped: ${stop.message}`, exit };
  return {
    text: state === 'cancelled' ? 'was cancelled' : `stopped; \`${programName()} resume\` continues it`,
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
  { bill, quote }: Receipt,
): void {
  printJson(context, {
    ...summary,
    dir: folder.dir,
    ...(rejects.length > 0 ? { rejects, rejectsFile } : {}),
    ...(cost ? { cost } : {}),
    ...(bill.items.length > 0 ? { bill } : {}),
    ...(quote ? { quote } : {}),
    ...(useless ? { error: useless } : {}),
    ...(sheet ? { sheet: sheet.place } : {}),
  });
}

function closingText(
  given: Context['parsed']['values'],
  view: RunView,
  job: Job,
  ended: string | null,
  { rejects, rejectsFile, counters, cost }: RunEnd,
  summary: JobSummary,
  sources: SourcesVerdict,
  receipt: Receipt,
): string {
  const { quality, changes } = summary;
  const shown = { quality, qualityPass: earlierPassOf(summary), ...(changes ? { changes } : {}) };
  const lines = [renderSummary(view, shown)];
  if (ended !== null) lines.push(printable(`${job.name}-${job.run} ${ended}`));
  for (const reject of rejects.slice(0, REJECTS_SHOWN))
    lines.push(`  rejected: ${printable(`${reject.source}, ${reject.place}: ${reject.reason}`)}`);
  const rejected = summary.thisPass?.rejected ?? summary.rejected;
  if (rejects.length > REJECTS_SHOWN)
    lines.push(`  … ${formatCount(rejected)} rows in total; see ${printable(String(rejectsFile))}`);
  if (cost) lines.push(costLine(cost));
  const bill = receiptLine(receipt);
  if (bill !== null) lines.push(printable(bill));
  if (sources.empty) lines.push(printable(sources.empty));
  if (sources.useless) lines.push(printable(`error: ${sources.useless}`));
  if (counters.dead > 0) lines.push(`next: ${printable(nextCommand(given, `dead ${job.name}`))}`);
  return `${lines.join('\n')}\n`;
}

function costLine({ invocations, gbSeconds, usd }: DispatchCost): string {
  return `cost: ${formatAmount(invocations, 'invocation')}, ${gbSeconds.toFixed(1)} GB-seconds, about ${formatUsd(usd)}`;
}
