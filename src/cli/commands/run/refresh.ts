import { existsSync } from 'node:fs';
import { checkSources, openJobAccess } from '../../../app/app.ts';
import { type Folder, openFolder } from '../../../app/folder.ts';
import { isResumable, requireJob } from '../../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import { changeText, compareJobs } from '../../../core/job-schema/job-change.ts';
import { checkSpec, completeSpec, hashOfSpec } from '../../../job-file/parse-job.ts';
import type { Job } from '../../../ports/store.ts';
import { type Context, print, printable, withFolder } from '../../context.ts';
import { serverOf } from '../../folder-server.ts';
import { COMMANDS } from '../../specs/commands.ts';
import { followRun } from './follow-run.ts';
import { followServed } from './follow-served.ts';
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
    await checkSources(spec.sources, context.settings, folder.store, spec);
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
  if (isResumable(job.state) && job.state !== 'waiting') {
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

/** A job goes on with another pace and other limits, where options say so. */
export async function withNewLimits(context: Context, folder: Folder, job: Job): Promise<Job> {
  const { values } = context.parsed;
  const number = (name: string) =>
    values[name] === undefined ? undefined : toNumber(`--${name}`, values[name]);
  const { limits, politeness } = job.spec;
  const spec = checkSpec(
    {
      ...job.spec,
      limits: {
        ...limits,
        pages: number('max-pages') ?? limits.pages,
        seconds: number('max-seconds') ?? limits.seconds,
        bytes: number('max-bytes') ?? limits.bytes,
        requests: number('max-requests') ?? limits.requests,
        dollars: number('max-dollars') ?? limits.dollars,
        browserSeconds: number('max-browser-seconds') ?? limits.browserSeconds,
      },
      politeness: {
        ...politeness,
        rate: values.rate === 'max' ? 'max' : (number('rate') ?? politeness.rate),
        parallel: number('parallel') ?? politeness.parallel,
        adaptive: values['no-adaptive'] ? false : politeness.adaptive,
      },
    },
    'the options',
  );
  const changes = compareJobs(job.spec, spec).tuned;
  if (changes.length === 0) return job;
  const specHash = hashOfSpec(spec, job.bundle);
  await folder.store.jobs.update(job.id, { spec, specHash });
  if (!context.json)
    for (const change of changes)
      print(context.stderr, `${printable(`${job.name}-${job.run}: ${changeText(change)}`)}\n`);
  return { ...job, spec, specHash };
}
