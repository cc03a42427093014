import { readFile } from 'node:fs/promises';
import type { Folder } from '../../../app/folder.ts';
import { ApiError, type Client, connect } from '../../../client/client.ts';
import { requireJob } from '../../../coordinator/jobs.ts';
import type { RunView } from '../../../coordinator/reports/run-view.ts';
import {
  type StoredFigures,
  storedFigures,
  viewOfFigures,
} from '../../../coordinator/reports/stored-view.ts';
import { type ExitName, messageOf, SeineError } from '../../../core/errors.ts';
import type { Explanation } from '../../../core/explain/explain.ts';
import { COUNTER_NAMES, type Counters, type JobState } from '../../../core/model.ts';
import type { Job } from '../../../ports/store.ts';
import { type Command, type Context, printJson, withFolder } from '../../context.ts';
import { servedView, serverOf } from '../../folder-server.ts';
import { dashboardOf } from './follow-served.ts';
import { watchSignals } from './watch-signals.ts';

const LOOK_MS = 1_000;
const HOSTS_MAX = 12;

/** The dashboard of a job that another process runs. */
export const topCommand: Command = async (context) => {
  const { server } = context.parsed.values;
  const name = context.parsed.args[0] ?? null;
  if (server !== undefined) {
    const client = await clientOf(context, server);
    return show(context, await apiView(client, name));
  }
  return withFolder(context, async (folder) => {
    const { id } = await requireJob(folder.store, name);
    return show(context, () => folderView(folder, id));
  });
};

async function show(context: Context, look: () => Promise<RunView>): Promise<ExitName> {
  let view = await look();
  if (context.json) {
    printJson(context, view);
    return 'success';
  }
  const signals = watchSignals({ secondExits: true });
  const dashboard = await dashboardOf(context, () => view, context.stdout);
  try {
    while (!signals.came && (view.job.state === 'running' || view.job.state === 'stopping')) {
      await signals.wait(LOOK_MS);
      view = await look();
    }
    return 'success';
  } finally {
    dashboard?.close();
    signals.close();
  }
}

/** From the server that runs it, if one works in the folder; else from what its coordinator writes down. */
async function folderView(folder: Folder, jobId: number): Promise<RunView> {
  const job = await folder.store.jobs.get(jobId);
  const server = job.state === 'running' ? await serverOf(folder) : null;
  const served = server && (await servedView(server, job));
  return served ?? viewOfFigures(await figuresOf(folder, job), Date.now());
}

async function figuresOf(folder: Folder, job: Job): Promise<StoredFigures> {
  const isAlive = job.state === 'running' && (await folder.isAtWork(job.id));
  const figures = await storedFigures(folder.store, job, { now: Date.now(), dir: folder.dir, isAlive });
  // No coordinator works on it: it was killed, and waits to be resumed.
  return isAlive || job.state !== 'running' ? figures : { ...figures, state: 'stopped' };
}

async function clientOf(context: Context, url: string): Promise<Client> {
  const file = context.parsed.values['key-file'];
  if (!/^https?:\/\//.test(url))
    throw new SeineError(`--server needs a URL, got '${url}'`, { hint: 'for example http://127.0.0.1:7420' });
  if (file === undefined) return connect({ url });
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new SeineError(`cannot read the key file: ${messageOf(error)}`);
  });
  return connect({ url, key: text.trim() });
}

/** The API's words for states. */
const STATES: Record<string, JobState> = {
  queued: 'running',
  running: 'running',
  completed: 'done',
  failed: 'tripped',
  stopped: 'stopped',
  cancelled: 'cancelled',
};

interface ApiJob {
  job_id: string;
  name: string;
  status: string;
  counts: Record<string, number>;
  reason: string | null;
  created_at: string;
  ended_at: string | null;
}

interface ApiPoint {
  at: string;
  pages: number;
  bytes: number;
}

async function apiView(client: Client, name: string | null): Promise<() => Promise<RunView>> {
  const get = async <T>(path: string): Promise<T> => {
    try {
      return await client.call<T>('GET', path);
    } catch (error) {
      if (error instanceof ApiError) throw new SeineError(`the server refuses: ${error.message}`);
      throw new SeineError(`the server cannot be reached: ${messageOf(error)}`);
    }
  };
  const newest = async () => (await get<{ jobs: ApiJob[] }>('/jobs?limit=1')).jobs[0]?.job_id;
  const id = name ?? (await newest());
  if (id === undefined) throw new SeineError('the server has no jobs yet');
  const path = `/jobs/${encodeURIComponent(id)}`;
  return async () => {
    const [job, series, cells, hosts, why] = await Promise.all([
      get<ApiJob>(path),
      get<{ points: ApiPoint[] }>(`${path}/series?step=10`),
      get<{ cells: { code: string; count: number }[] }>(`${path}/failures`),
      get<{ hosts: { host: string; requests: number; rate: number | null }[] }>(
        `${path}/hosts?limit=${HOSTS_MAX}`,
      ),
      get<Explanation>(`${path}/explain`),
    ]);
    const failures = new Map<string, number>();
    for (const { code, count } of cells.cells) failures.set(code, (failures.get(code) ?? 0) + count);
    const startedAt = Date.parse(job.created_at);
    const endedAt = job.ended_at === null ? Date.now() : Date.parse(job.ended_at);
    const figures: StoredFigures = {
      name: job.name,
      state: STATES[job.status] ?? 'stopped',
      dir: null,
      startedAt,
      workedMs: Math.max(0, endedAt - startedAt),
      counters: countersOf(job.counts),
      points: series.points.map(({ at, pages, bytes }) => ({ at: Date.parse(at), pages, bytes })),
      hosts: hosts.hosts.map(({ host, requests, rate }) => ({
        ...{ host, requests, done: 0, failed: 0, p50Ms: null, p95Ms: null },
        state: 'active' as const,
        requestsPerSecond: rate ?? 0,
      })),
      failures: [...failures].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count),
      dead: [],
      skips: [],
      reason: job.reason,
      explanation: why.limiting === null ? null : why,
    };
    return viewOfFigures(figures, Date.now());
  };
}

function countersOf(counts: Record<string, number>): Counters {
  return {
    ...(Object.fromEntries(COUNTER_NAMES.map((name) => [name, counts[name] ?? 0])) as Record<
      keyof Counters,
      number
    >),
    accepted: counts.total ?? 0,
    done: counts.succeeded ?? 0,
    dead: counts.failed ?? 0,
    pending: (counts.pending ?? 0) - (counts.running ?? 0),
    leased: counts.running ?? 0,
  };
}
