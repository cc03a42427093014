import { decisionsOf, wantedOf } from '../../../coordinator/explain/explain-job.ts';
import type { ExitName } from '../../../core/errors.ts';
import { decisionText, type ScalingDecision } from '../../../core/explain/scaling-decision.ts';
import { type Wanted, wantedText } from '../../../core/scaling/scaling.ts';
import { type KnownWorker, type WorkerState, workerStateOf } from '../../../core/workers/worker-health.ts';
import { openFleet } from '../../../transport/bullmq/fleet.ts';
import { formatBytes, formatDuration } from '../../../tui/format.ts';
import { type Context, print, printable, printJson, withFolder } from '../../context.ts';
import { queueUrl } from './worker.ts';

const WORKERS_MAX = 1_000;

interface Row extends KnownWorker {
  state: WorkerState;
  hosts: readonly string[];
}

/** Shows the workers that are alive at a queue, or those that a folder or database knows of. */
export async function workersCommand(context: Context): Promise<ExitName> {
  if (context.parsed.values.wanted === 'true') return wantedCommand(context);
  const queues = (context.settings.dispatch ?? []).filter(({ kind }) => kind === 'bullmq');
  const isPast = context.parsed.values.past === 'true' || queues.length === 0;
  const { rows, none, decisions = [] } = isPast ? await knownWorkers(context) : await liveWorkers(context);
  if (context.json) for (const row of rows) printJson(context, jsonOf(row));
  else if (rows.length === 0) print(context.stdout, `${none}\n`);
  else print(context.stdout, `${textOf(rows, Date.now())}${decisions.join('')}`);
  return 'success';
}

/** How many workers the jobs that run could use together; for people, and for programs that start workers. */
async function wantedCommand(context: Context): Promise<ExitName> {
  return withFolder(context, async ({ store }): Promise<ExitName> => {
    const jobs: (Wanted & { job: string; decisions: ScalingDecision[] })[] = [];
    for (const job of await store.jobs.running()) {
      const wanted = await wantedOf(store, job);
      const decisions = await decisionsOf(store, job);
      if (wanted) jobs.push({ job: `${job.name}-${job.run}`, ...wanted, decisions });
    }
    const workers = jobs.reduce((sum, one) => sum + one.workers, 0);
    if (context.json) printJson(context, { workers, jobs });
    else {
      const lines = jobs.flatMap((one) => [
        `  ${one.job}: ${wantedText(one)}`,
        ...one.decisions.map((decision) => `    ${decisionText(decision)}`),
      ]);
      const head = jobs.length === 0 ? 'no job that runs has been measured yet' : `wanted: ${workers}`;
      print(context.stdout, `${[head, ...lines].map(printable).join('\n')}\n`);
    }
    return 'success';
  });
}

async function liveWorkers(context: Context): Promise<{ rows: Row[]; none: string; decisions?: string[] }> {
  const { fleetKeys = [], logger } = context.settings;
  const fleet = await openFleet({ url: queueUrl(context), fleetKeys, logger });
  try {
    const { heartbeats, refused } = await fleet.workers();
    if (refused > 0) logger.warn(`workers with another fleet key, or none: ${refused}`);
    const rows = heartbeats.map((heartbeat): Row => {
      const times = { firstSeenAt: heartbeat.at, lastSeenAt: heartbeat.at };
      return { ...heartbeat, ...times, state: heartbeat.isDraining ? 'draining' : 'live' };
    });
    return { rows, none: `no live workers at Redis ${fleet.place}` };
  } finally {
    fleet.close();
  }
}

async function knownWorkers(context: Context): Promise<{ rows: Row[]; none: string; decisions: string[] }> {
  return withFolder(context, async ({ store }) => {
    const known = await store.workers.list({ limit: WORKERS_MAX });
    const now = Date.now();
    const rows = known.map((worker): Row => ({ ...worker, hosts: [], state: workerStateOf(worker, now) }));
    const lines: string[] = [];
    for (const job of await store.jobs.running()) {
      const last = (await decisionsOf(store, job)).at(-1);
      if (last) lines.push(`${printable(`${job.name}-${job.run}: ${decisionText(last)}`)}\n`);
    }
    return { rows, none: 'no worker was seen within the last 14 days', decisions: lines };
  });
}

function jsonOf(row: Row) {
  const { worker, state, kind, threads, slots, cpu, memoryBytes, batches, batchesDone, tasksDone, hosts } =
    row;
  return {
    worker,
    state,
    kind,
    version: row.software === '' ? null : row.software,
    threads,
    slots,
    cpu,
    memoryBytes,
    batches,
    batchesDone,
    tasksDone,
    hosts,
    seenAt: new Date(row.lastSeenAt).toISOString(),
  };
}

function textOf(rows: readonly Row[], now: number): string {
  const cells = rows.map((row) => [
    row.worker,
    row.kind,
    row.state,
    row.software,
    String(row.threads),
    `${Math.round(row.cpu * 100)} %`,
    formatBytes(row.memoryBytes),
    String(row.batches),
    String(row.tasksDone),
    formatDuration(Math.max(0, now - row.lastSeenAt)),
    row.hosts.join(' '),
  ]);
  const head = ['worker', 'kind', 'state', 'version', 'threads', 'cpu', 'memory', 'batches', 'pages', 'seen'];
  const lines = [[...head, 'hosts'], ...cells];
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines
    .map((line) => printable(line.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')).trimEnd())
    .join('\n')
    .concat('\n');
}
