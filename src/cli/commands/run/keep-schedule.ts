import type { Folder } from '../../../app/folder.ts';
import { isResumable } from '../../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import { nextRunAt } from '../../../core/job-schema/schedule.ts';
import type { Job } from '../../../ports/store.ts';
import type { Context } from '../../context.ts';
import { print } from '../../context.ts';
import { followRun } from './follow-run.ts';
import type { Signals } from './watch-signals.ts';

/** New jobs and changed schedules are noticed this often. */
const LOOK_MS = 5_000;

/** Runs a job again at its times, until a signal comes. A run that was due before is started once. */
export async function keepSchedule(
  context: Context,
  folder: Folder,
  name: string,
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

async function nextOf(folder: Folder, name: string): Promise<{ job: Job; at: number }> {
  const job = await folder.store.jobs.find(name);
  const at = job?.spec.schedule ? nextRunAt(job.spec.schedule, job.passStartedAt) : null;
  if (job && at !== null) return { job, at };
  throw new SeineError(`${name} has no schedule`, {
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
