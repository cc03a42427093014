import { type Folder, openFolder } from '../../app/folder.ts';
import { isResumable } from '../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../core/errors.ts';
import { nextRunAt } from '../../core/job-schema/schedule.ts';
import type { Job } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { print } from '../context.ts';
import { followRun } from './follow-run.ts';
import { type Signals, watchSignals } from './watch-signals.ts';

/** New jobs and changed schedules are noticed this often. */
const LOOK_MS = 5_000;

/** Runs every job of the folder that has a schedule, each at its times, until a signal comes. */
export async function serveCommand(context: Context): Promise<ExitName> {
  const folder = await openFolder(context.settings, { create: false, toWork: true });
  const signals = watchSignals({ secondExits: false });
  try {
    return await keepSchedule(context, folder, null, signals);
  } finally {
    signals.close();
    await folder.close();
  }
}

/** `name` keeps to one job. A run that was due while `serve` was not running is started once. */
export async function keepSchedule(
  context: Context,
  folder: Folder,
  name: string | null,
  signals: Signals,
): Promise<ExitName> {
  let announced = '';
  while (!signals.came) {
    const next = await nextOf(folder, name);
    const wait = next.at - Date.now();
    if (wait <= 0) {
      if ((await runAgain(context, folder, next.job)) === 'interrupted') break;
      continue;
    }
    const line = `${next.job.name} runs next at ${new Date(next.at).toISOString()}\n`;
    if (line !== announced && !context.json) print(context.stderr, line);
    announced = line;
    await signals.wait(Math.min(wait, LOOK_MS));
  }
  return 'interrupted';
}

async function nextOf(folder: Folder, name: string | null): Promise<{ job: Job; at: number }> {
  const newest = new Map<string, Job>();
  for (const job of await folder.store.jobs.list(10_000))
    if (!newest.has(job.name) && (name === null || job.name === name)) newest.set(job.name, job);
  let next: { job: Job; at: number } | null = null;
  for (const job of newest.values()) {
    const at = job.spec.schedule ? nextRunAt(job.spec.schedule, job.passStartedAt) : null;
    if (at !== null && (next === null || at < next.at)) next = { job, at };
  }
  if (next) return next;
  throw new SeineError(name === null ? 'no job in this folder has a schedule' : `${name} has no schedule`, {
    hint: "add one to the job: schedule: '0 3 * * *'",
  });
}

async function runAgain(context: Context, folder: Folder, job: Job): Promise<ExitName> {
  const lock = folder.lock();
  return followRun(context, folder, lock, await openAgain(folder, job));
}

async function openAgain({ store }: Folder, job: Job): Promise<Job> {
  if (isResumable(job.state)) return job;
  const { spec, specHash, bundle, file, name } = job;
  const code = { spec, specHash, bundle, file, now: Date.now() };
  const refreshes = spec.schedule?.refresh !== false && job.state !== 'cancelled';
  return refreshes ? store.jobs.beginPass(job.id, code) : store.jobs.create({ ...code, name });
}
