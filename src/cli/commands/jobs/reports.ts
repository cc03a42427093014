import { explainJob } from '../../../coordinator/explain/explain-job.ts';
import {
  isResumable,
  type JobSummary,
  type PassCounters,
  requireJob,
  summarize,
} from '../../../coordinator/jobs.ts';
import { hostReporter } from '../../../coordinator/reports/host-report.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import { FAILURES } from '../../../core/failures.ts';
import type { RequestedState } from '../../../core/model.ts';
import { suggestion } from '../../../core/text/nearest-name.ts';
import { getOwn } from '../../../core/values/own-property.ts';
import type { DeadGroup, Job, Store } from '../../../ports/store.ts';
import { changesText } from '../../../tui/changes.ts';
import {
  droppedText,
  formatAmount,
  formatBytes,
  formatCount,
  formatDuration,
  formatQuantiles,
} from '../../../tui/format.ts';
import { qualityLines } from '../../../tui/quality.ts';
import { paintLine } from '../../../tui/text.ts';
import { type Command, type Context, print, printable, printJson, withFolder } from '../../context.ts';
import { resumeServed, serverOf } from '../../folder-server.ts';
import { nextCommand } from '../../program-name.ts';
import { productOf } from './hosts.ts';

const JOBS_SHOWN = 200;

export const statusCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    const alive = await folder.isAtWork(job.id);
    const summary = await summarize(folder.store, job, { alive });
    const tallies = await folder.store.views.tallies(job.id);
    const firing = await folder.store.alerts.firing();
    const alerts = firing
      .filter(({ subject }) => subject === '' || subject === job.name)
      .map(({ kind, text, firedAt }) => ({ kind, text, firedAt: new Date(firedAt).toISOString() }));
    const paused = await pausedHosts(folder.store, job);
    if (context.json) {
      printJson(context, { ...summary, tallies, alerts, paused });
      return 'success';
    }
    const { sentence, limiting } = await explainJob(folder.store, job, {
      isAlive: alive && job.state === 'running',
    });
    const pass = summary.pass > 1 ? `, pass ${summary.pass}` : '';
    const lines = [
      `${summary.id}: ${summary.state}${summary.reason ? ` (${summary.reason})` : ''}${pass}`,
      `  accepted ${formatCount(summary.accepted)} = done ${formatCount(summary.done)} + unchanged ${formatCount(summary.unchanged)} + skipped ${formatCount(summary.skipped)} + dead ${formatCount(summary.dead)} + pending ${formatCount(summary.pending)} + leased ${formatCount(summary.leased)}`,
      `  ${formatAmount(summary.records, 'record')}, ${formatAmount(summary.requests, 'request')}, ${formatBytes(summary.bytes)}, ${formatDuration(summary.seconds * 1_000)}, ${summary.pagesPerSecond} pages/s`,
      ...alerts.map(({ kind, text, firedAt }) => `  alert ${kind} since ${firedAt}: ${text}`),
      ...(summary.latencyMs.p50 === null ? [] : [`  answers took ${formatQuantiles(summary.latencyMs)}`]),
      ...(summary.dropped > 0 ? [`  ${droppedText(summary.dropped)}`] : []),
      ...(summary.changes ? [`  ${changesText(summary.changes)}`] : []),
      ...paused.slice(0, PAUSED_SHOWN).map(({ host, why }) => `  ${printable(`${host}: ${why}`)}`),
      ...(paused.length > PAUSED_SHOWN
        ? [`  … ${formatAmount(paused.length, 'host')} in all; see \`seine hosts\``]
        : []),
      ...(summary.thisPass ? [passLine(summary.thisPass)] : []),
      // While everything waits for one thing, its forecast would not hold.
      ...(limiting === null || summary.reason ? [] : [`  ${sentence}`]),
      ...tallies.map(({ state, code, count }) => `  ${state} ${code}: ${formatCount(count)}`),
      ...qualityLines(summary.quality, earlierPassOf(summary)).map((line) => paintLine(line, false)),
    ];
    print(context.stdout, `${lines.join('\n')}\n`);
    return 'success';
  });

const PAUSED_SHOWN = 3;
/** A job of many hosts is not looked through for its pauses. */
const HOSTS_LOOKED_AT = 1_000;

interface PausedHost {
  host: string;
  why: string;
  nextAt: string | null;
}

/** Hosts with work that are not asked for now, and why: what keeps a run from moving. */
async function pausedHosts(store: Store, job: Job): Promise<PausedHost[]> {
  if (!isResumable(job.state)) return [];
  const report = hostReporter(job.spec, productOf(job.spec));
  const found: PausedHost[] = [];
  let count = 0;
  for await (const facts of store.hosts.list(job.id)) {
    if (++count > HOSTS_LOOKED_AT) break;
    const { host, state, limitedBy, nextAt } = report(facts, Date.now());
    const isPaused = state === 'resting' || state === 'banned' || state === 'closed';
    if (isPaused || limitedBy.startsWith('pauses until')) found.push({ host, why: limitedBy, nextAt });
  }
  return found;
}

/** The pass that the quality is of, when it is not the present one. */
export function earlierPassOf({
  pass,
  qualityPass,
}: Pick<JobSummary, 'pass' | 'qualityPass'>): number | null {
  return qualityPass === pass ? null : qualityPass;
}

function passLine({ accepted, requests, bytes, records }: PassCounters): string {
  return `  this pass: ${formatAmount(accepted, 'new URL')}, ${formatAmount(requests, 'request')}, ${formatBytes(bytes)}, ${formatAmount(records, 'new record')}`;
}

export const jobsCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const jobs = await folder.store.jobs.list(JOBS_SHOWN);
    const rows = await Promise.all(
      jobs.map(async (job) => summarize(folder.store, job, { alive: await folder.isAtWork(job.id) })),
    );
    if (context.json) {
      printJson(context, rows);
      return 'success';
    }
    for (const row of rows) {
      const finished = row.done + row.unchanged + row.skipped + row.dead;
      print(
        context.stdout,
        `${row.id.padEnd(28)} ${row.state.padEnd(12)} ${formatCount(finished)} of ${formatAmount(row.accepted, 'task')}, ${row.createdAt}\n`,
      );
    }
    if (rows.length === 0) print(context.stdout, 'no jobs yet\n');
    return 'success';
  });

async function requestState(context: Context, requestedState: RequestedState): Promise<ExitName> {
  return withFolder(context, async (folder): Promise<ExitName> => {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    const alive = job.state === 'running' && (await folder.isAtWork(job.id));
    const name = `${job.name}-${job.run}`;
    if (job.state === 'done' || job.state === 'cancelled') {
      throw new SeineError(`${name} is already ${job.state}`);
    }
    await folder.store.jobs.update(
      job.id,
      alive
        ? { requestedState }
        : {
            requestedState,
            state: requestedState === 'cancel' ? 'cancelled' : 'stopped',
            reason: `${requestedState} was requested`,
          },
    );
    if (context.json)
      printJson(context, { job: job.name, run: job.run, id: name, wish: requestedState, alive });
    else
      print(
        context.stdout,
        alive
          ? `${name} will ${requestedState} within a second\n`
          : `${name} was not running; it is ${requestedState === 'cancel' ? 'cancelled' : 'stopped'} now\n`,
      );
    return 'success';
  });
}

export const stopCommand: Command = (context) => requestState(context, 'stop');
export const cancelCommand: Command = (context) => requestState(context, 'cancel');

export const deadCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    const { code, host, url, retry, hosts } = context.parsed.values;
    const filter = { code: code === undefined ? undefined : codesOf(code), host, urlContains: url };
    if (retry) {
      const count = await folder.store.views.retryDead(job.id, filter, Date.now());
      const server = await serverOf(folder);
      if (count > 0 && server) await resumeServed(folder, server, job);
      else if (count > 0 && job.state === 'done')
        await folder.store.jobs.update(job.id, {
          state: 'stopped',
          reason: 'dead letters were queued again',
        });
      const next = server
        ? '; the server continues the job'
        : `; next: ${nextCommand(context.parsed.values, `resume ${job.name}`)}`;
      if (context.json) printJson(context, { job: job.name, run: job.run, retried: count });
      else print(context.stdout, `${formatAmount(count, 'task')} queued again${count > 0 ? next : ''}\n`);
      return 'success';
    }
    const groups = await folder.store.views.dead(job.id, filter);
    if (context.json) {
      printJson(context, groups);
      return 'success';
    }
    if (groups.length === 0) print(context.stdout, 'no dead letters\n');
    for (const group of hosts ? groups : totalsByCode(groups)) {
      const count = formatCount(group.count).padStart(8);
      const detail = group.sampleDetail ? `: ${printable(group.sampleDetail)}` : '';
      print(
        context.stdout,
        `${count}  ${group.code.padEnd(18)} ${group.host}\n${' '.repeat(10)}${printable(group.sampleUrl)}${detail}\n`,
      );
    }
    const hostCount = new Set(groups.map((group) => group.host)).size;
    if (!hosts && hostCount > 1)
      print(context.stdout, `on ${formatCount(hostCount)} hosts; \`seine dead --hosts\` shows them\n`);
    return 'success';
  });

/** `server-error,reset`: what is no code of ours finds nothing, which looks as if nothing were wrong. */
function codesOf(text: string): string[] {
  const codes = text.split(',').map((code) => code.trim());
  const known = Object.keys(FAILURES);
  const unknown = codes.find((code) => !known.includes(code));
  if (unknown !== undefined)
    throw new SeineError(`--code: there is no failure code '${unknown}'${suggestion(unknown, known)}`, {
      hint: 'see docs/failure-codes.md for all of them',
    });
  return codes;
}

/** One line for each code, the largest first, with what the code means. */
function totalsByCode(groups: readonly DeadGroup[]): DeadGroup[] {
  const totals = new Map<string, DeadGroup>();
  for (const group of groups) {
    const total = totals.get(group.code);
    if (total) total.count += group.count;
    else totals.set(group.code, { ...group, host: docOfCode(group.code) });
  }
  return [...totals.values()].sort((a, b) => b.count - a.count);
}

function docOfCode(code: string): string {
  return getOwn<{ doc: string }>(FAILURES, code)?.doc ?? '';
}
