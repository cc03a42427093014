import { existsSync } from 'node:fs';
import { checkSources, openJobAccess } from '../../app/app.ts';
import { type Folder, openFolder } from '../../app/folder.ts';
import { isResumable, requireJob } from '../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../core/errors.ts';
import { completeSpec } from '../../job-file/parse-job.ts';
import type { Job } from '../../ports/store.ts';
import { type Context, print, withFolder } from '../context.ts';
import { COMMANDS } from '../specs/commands.ts';
import { followRun } from './follow-run.ts';
import { followServed, serverOf } from './follow-served.ts';
import { toNumber } from './job-from-flags.ts';

/** Visits the URLs of a job again, with the spec and the code that it was run with last. */
export async function refreshCommand(context: Context): Promise<ExitName> {
  const folder = await openFolder(context.settings, { create: false, toWork: true });
  try {
    const last = await requireJob(folder.store, context.parsed.args[0] ?? null);
    if (last.state === 'cancelled')
      throw new SeineError(`${last.name}-${last.run} was cancelled`, {
        hint: 'start a new run with `seine run`',
      });
    const spec = completeSpec(last.spec);
    await checkSources(spec.sources, context.settings, folder.store, spec.allowPrivate);
    await openJobAccess(spec, context.settings);
    const server = await serverOf(folder);
    const lock = server ? null : folder.lock();
    const job = await withNewLimits(context, folder, await openPass(context, folder, { ...last, spec }));
    if (server) return await followServed(context, folder, server, job);
    return await followRun(context, folder, lock!, job);
  } finally {
    await folder.close();
  }
}

async function openPass(context: Context, { store }: Folder, job: Job): Promise<Job> {
  if (isResumable(job.state)) {
    if (!context.json)
      print(context.stderr, `continuing ${job.name}-${job.run}, pass ${job.pass}, which was not finished\n`);
    return job;
  }
  const { spec, specHash, bundle, file } = job;
  return store.jobs.beginPass(job.id, { spec, specHash, bundle, file, now: Date.now() });
}

/** `seine run shop --refresh`: a name that is no file, of a job that is there. */
export async function meansJobByName(context: Context): Promise<boolean> {
  const { args, values, lists } = context.parsed;
  const [name] = args;
  if (values.refresh !== 'true' || args.length !== 1 || !/^[\w.-]+$/.test(name!) || existsSync(name!))
    return false;
  const isJob = await withFolder(context, async ({ store }) => (await store.jobs.find(name!)) !== null).catch(
    () => false,
  );
  if (!isJob) {
    // With an ending it is meant as a file.
    if (/\.[a-z]\w+$/i.test(name!)) return false;
    throw new SeineError(`no file and no job named '${name}'`, { hint: 'list the jobs with `seine jobs`' });
  }
  const other = [...Object.keys(values), ...Object.keys(lists)].find(
    (option) => option !== 'refresh' && !Object.hasOwn(COMMANDS.refresh!.options, option),
  );
  if (other !== undefined)
    throw new SeineError(`--${other} cannot be used when a job is refreshed by name`, {
      hint: 'pass the job file or the sources instead, or leave the option out',
    });
  return true;
}

/** A job that stopped at a limit goes on with a larger one. */
export async function withNewLimits(context: Context, folder: Folder, job: Job): Promise<Job> {
  const { values } = context.parsed;
  const limits = { ...job.spec.limits };
  if (values['max-pages']) limits.pages = toNumber('--max-pages', values['max-pages']);
  if (values['max-seconds']) limits.seconds = toNumber('--max-seconds', values['max-seconds']);
  if (values['max-bytes']) limits.bytes = toNumber('--max-bytes', values['max-bytes']);
  const spec = { ...job.spec, limits };
  await folder.store.jobs.update(job.id, { spec });
  return { ...job, spec };
}
