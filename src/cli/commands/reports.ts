import { type JobSummary, type PassCounters, requireJob, summarize } from '../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../core/errors.ts';
import type { RequestedState } from '../../core/model.ts';
import { droppedText, formatBytes, formatCount, formatDuration } from '../../tui/format.ts';
import { qualityLines } from '../../tui/quality.ts';
import { paintLine } from '../../tui/text.ts';
import { type Command, type Context, print, printable, printJson, withFolder } from '../context.ts';

const JOBS_SHOWN = 200;

export const statusCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    const summary = await summarize(folder.store, job, { alive: await folder.isAtWork(job.id) });
    const tallies = await folder.store.views.tallies(job.id);
    if (context.json) {
      printJson(context, { ...summary, tallies });
      return 'success';
    }
    const pass = summary.pass > 1 ? `, pass ${summary.pass}` : '';
    const lines = [
      `${summary.id}: ${summary.state}${summary.reason ? ` (${summary.reason})` : ''}${pass}`,
      `  accepted ${formatCount(summary.accepted)} = done ${formatCount(summary.done)} + unchanged ${formatCount(summary.unchanged)} + skipped ${formatCount(summary.skipped)} + dead ${formatCount(summary.dead)} + pending ${formatCount(summary.pending)} + leased ${formatCount(summary.leased)}`,
      `  ${formatCount(summary.records)} records, ${formatCount(summary.requests)} requests, ${formatBytes(summary.bytes)}, ${formatDuration(summary.seconds * 1_000)}, ${summary.pagesPerSecond} pages/s`,
      ...(summary.dropped > 0 ? [`  ${droppedText(summary.dropped)}`] : []),
      ...(summary.thisPass ? [passLine(summary.thisPass)] : []),
      ...tallies.map(({ state, code, count }) => `  ${state} ${code}: ${formatCount(count)}`),
      ...qualityLines(summary.quality, earlierPassOf(summary)).map((line) => paintLine(line, false)),
    ];
    print(context.stdout, `${lines.join('\n')}\n`);
    return 'success';
  });

/** The pass that the quality is of, when it is not the present one. */
export function earlierPassOf({
  pass,
  qualityPass,
}: Pick<JobSummary, 'pass' | 'qualityPass'>): number | null {
  return qualityPass === pass ? null : qualityPass;
}

function passLine({ accepted, requests, bytes, records }: PassCounters): string {
  return `  this pass: ${formatCount(accepted)} new URLs, ${formatCount(requests)} requests, ${formatBytes(bytes)}, ${formatCount(records)} new records`;
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
        `${row.id.padEnd(28)} ${row.state.padEnd(12)} ${formatCount(finished)} of ${formatCount(row.accepted)} tasks, ${row.createdAt}\n`,
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
    const { code, host, url, retry } = context.parsed.values;
    const filter = { code, host, urlContains: url };
    if (retry) {
      const count = await folder.store.views.retryDead(job.id, filter, Date.now());
      if (count > 0 && job.state === 'done')
        await folder.store.jobs.update(job.id, {
          state: 'stopped',
          reason: 'dead letters were queued again',
        });
      if (context.json) printJson(context, { job: job.name, run: job.run, retried: count });
      else
        print(
          context.stdout,
          `${formatCount(count)} tasks queued again${count > 0 ? `; next: seine resume ${job.name}` : ''}\n`,
        );
      return 'success';
    }
    const groups = await folder.store.views.dead(job.id, filter);
    if (context.json) {
      printJson(context, groups);
      return 'success';
    }
    if (groups.length === 0) print(context.stdout, 'no dead letters\n');
    for (const group of groups) {
      print(
        context.stdout,
        `${formatCount(group.count).padStart(8)}  ${group.code.padEnd(18)} ${group.host}\n${' '.repeat(10)}${printable(group.sampleUrl)}${group.sampleDetail ? `: ${printable(group.sampleDetail)}` : ''}\n`,
      );
    }
    return 'success';
  });
