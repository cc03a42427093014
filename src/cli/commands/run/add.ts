import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { checkSources, openAddedSources } from '../../../app/app.ts';
import type { Folder } from '../../../app/folder.ts';
import { requireJob } from '../../../coordinator/jobs.ts';
import { type AddedRow, type AddedRows, addToJob } from '../../../coordinator/sources/add-to-job.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import { TASK_PRIORITY_MAX } from '../../../core/job-schema/source.ts';
import { unknownRouteOf } from '../../../core/job-schema/source-name.ts';
import { openSystemResolver } from '../../../fetch/network/system-resolver.ts';
import { completeSpec } from '../../../job-file/parse-job.ts';
import type { Source } from '../../../ports/source.ts';
import type { Job } from '../../../ports/store.ts';
import { formatCount } from '../../../tui/format.ts';
import { type Command, type Context, print, printable, printJson, withFolder } from '../../context.ts';
import { serverOf, wakeServed } from '../../folder-server.ts';
import { toSource } from './job-from-flags.ts';

const REJECTS_SHOWN = 3;

/** URLs into a job that runs, waits or is finished. */
export const addCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const [name, ...lists] = context.parsed.args;
    if (name === undefined || lists.length === 0)
      throw new SeineError('a job and URLs are needed', {
        hint: 'for example: seine add shop urls.csv, or seine add shop https://shop.example/new',
      });
    const priority = priorityOf(context.parsed.values.priority);
    const found = await requireJob(folder.store, name);
    const job = { ...found, spec: completeSpec(found.spec) };
    const specs = await Promise.all(lists.map((list) => toSource(list, context)));
    const unknown = unknownRouteOf({ sources: specs, routes: job.spec.routes });
    if (unknown !== null) throw new SeineError(`${job.name} has no route '${unknown}'`);
    await checkSources(specs, context.settings, folder.store, job.spec);
    const spoolDir = join(folder.dir, 'inputs', `add-${process.pid}-${Date.now()}`);
    const { sources, close } = openAddedSources(
      folder,
      { ...job, spec: { ...job.spec, sources: specs } },
      spoolDir,
      context.settings,
    );
    try {
      const added = await addToJob(folder.store, job.id, rowsOf(sources, priority), {
        now: Date.now,
        resolver: openSystemResolver(),
      });
      const next = await nextOf(folder, await folder.store.jobs.get(job.id));
      tell(context, job, added, next);
      return added.accepted + added.duplicates === 0 ? 'bad-input' : 'success';
    } finally {
      await close();
      rmSync(spoolDir, { recursive: true, force: true });
    }
  });

function priorityOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const priority = Number(text);
  if (text.trim() === '' || !Number.isInteger(priority) || Math.abs(priority) > TASK_PRIORITY_MAX)
    throw new SeineError(
      `--priority must be a whole number from -${TASK_PRIORITY_MAX} to ${TASK_PRIORITY_MAX}, got '${text}'`,
    );
  return priority;
}

/** What the rows say of themselves wins over what the command says of all. */
async function* rowsOf(sources: readonly Source[], priority: number | null): AsyncIterable<AddedRow> {
  for (const source of sources)
    for await (const { row, place } of source.rows(null)) {
      if ('reason' in row) yield { url: `${source.name}, ${place}`, reason: row.reason };
      else yield { ...row, priority: row.priority ?? priority ?? source.priority };
    }
}

interface Next {
  state: Job['state'];
  /** Whether a coordinator fetches them now. */
  alive: boolean;
  hint: string | null;
}

async function nextOf(folder: Folder, job: Job): Promise<Next> {
  const { state } = job;
  const resume = `\`seine resume ${job.name}-${job.run}\` fetches them`;
  if (state !== 'running') return { state, alive: false, hint: `it is ${state}; ${resume}` };
  const server = await serverOf(folder);
  if (server) {
    await wakeServed(server, job);
    return { state, alive: true, hint: null };
  }
  const alive = await folder.isAtWork(job.id);
  return { state, alive, hint: alive ? null : resume };
}

function tell(context: Context, job: Job, added: AddedRows, { state, alive, hint }: Next): void {
  const id = `${job.name}-${job.run}`;
  if (context.json) {
    printJson(context, { job: job.name, run: job.run, id, ...added, state, alive });
    return;
  }
  const { accepted, duplicates, rejected, rejects } = added;
  const parts = [`${formatCount(accepted)} URLs added to ${id}`];
  if (duplicates > 0) parts.push(`${formatCount(duplicates)} were there already`);
  if (rejected > 0) parts.push(`${formatCount(rejected)} rejected`);
  print(context.stdout, `${parts.join(', ')}\n`);
  for (const { url, reason } of rejects.slice(0, REJECTS_SHOWN))
    print(context.stdout, printable(`  rejected: ${url}: ${reason}`).concat('\n'));
  if (hint && accepted > 0) print(context.stdout, `${hint}\n`);
}
