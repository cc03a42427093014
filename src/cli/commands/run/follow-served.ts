import type { ReadStream } from 'node:tty';
import type { Folder } from '../../../app/folder.ts';
import { createProgress } from '../../../coordinator/reports/progress.ts';
import type { RunView } from '../../../coordinator/reports/run-view.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import type { Job } from '../../../ports/store.ts';
import type { ServerFile } from '../../../server/server-file.ts';
import { openDashboard } from '../../../tui/dashboard.ts';
import { type Context, print } from '../../context.ts';
import { callServer } from '../../folder-server.ts';
import { failOnOf, type RunEnd, tellEnd } from './follow-run.ts';
import { type Signals, watchSignals } from './watch-signals.ts';

const LOOK_MS = 200;

/** Has the server of the folder run a job, shows it as if it ran here, and says how it ended. */
export async function followServed(
  context: Context,
  folder: Folder,
  server: ServerFile,
  job: Job,
): Promise<ExitName> {
  failOnOf(context);
  const { jobs } = folder.store;
  await jobs.update(job.id, { state: 'running', requestedState: 'run', reason: null, endedAt: null });
  await callServer(server, 'POST', job);
  const progress = createProgress({ startedAt: Date.now() });
  const about = { name: job.name, state: 'running' as const, dir: folder.dir };
  let view = progress.view({
    now: Date.now(),
    counters: await jobs.counters(job.id),
    job: about,
    sourcesDone: false,
  });
  const signals = watchSignals({ secondExits: true });
  let dashboard = await dashboardOf(context, () => view);
  try {
    while (true) {
      const followed = await callServer(server, 'GET', job).catch(() => {
        throw new SeineError(`the server at ${server.url} does not answer any more`, {
          hint: `\`seine serve\` continues ${job.name}-${job.run}`,
        });
      });
      // Another server of the same database may run it: then the store alone knows how far it is.
      view = followed.view ?? { ...view, counters: await jobs.counters(job.id) };
      const stored = await jobs.get(job.id);
      if (followed.end || (!followed.view && stored.state !== 'running')) {
        dashboard?.close();
        dashboard = null;
        const end = followed.end ?? (await endOf(folder, stored));
        view = { ...view, counters: end.counters, job: { ...view.job, state: end.state } };
        return await tellEnd(context, folder, job, view, end);
      }
      await signals.wait(LOOK_MS);
      if (!signals.came) continue;
      dashboard?.close();
      dashboard = null;
      return await detach(context, folder, job, await signals.first);
    }
  } finally {
    dashboard?.close();
    signals.close();
  }
}

/** Has the server of the folder run a job to its end, or until a signal comes. */
export async function runServed(
  folder: Folder,
  server: ServerFile,
  job: Job,
  signals: Signals,
): Promise<void> {
  await callServer(server, 'POST', job);
  while ((await folder.store.jobs.get(job.id)).state === 'running') {
    await signals.wait(LOOK_MS);
    if (signals.came) return folder.store.jobs.update(job.id, { requestedState: 'cancel' });
  }
}

export function dashboardOf(
  context: Context,
  view: () => RunView,
  output = context.stderr,
): ReturnType<typeof openDashboard> | null {
  return context.json ? null : openDashboard({ output, view, env: process.env });
}

/** What the server does not remember is in the store. */
async function endOf({ store }: Folder, { id, state, reason }: Job): Promise<RunEnd> {
  const isStop = state === 'stopped' || state === 'tripped' || state === 'cancelled';
  const cause = state === 'tripped' ? ('breaker' as const) : ('request' as const);
  const stop = isStop ? { state, cause, message: reason ?? state } : null;
  const counters = await store.jobs.counters(id);
  return { state, stop, counters, rejects: [], rejectsFile: '', cost: null };
}

/** The job goes on without us, unless someone at a terminal wants it stopped. */
async function detach(context: Context, folder: Folder, job: Job, signal: NodeJS.Signals): Promise<ExitName> {
  const name = `${job.name}-${job.run}`;
  if (signal === 'SIGINT' && process.stdin.isTTY && context.stderr.isTTY) {
    print(context.stderr, `stop ${name}? y stops it, any other key leaves it to the server: `);
    const key = await readKey(process.stdin);
    print(context.stderr, '\n');
    if (/^y/i.test(key)) {
      await folder.store.jobs.update(job.id, { requestedState: 'stop' });
      print(context.stderr, `${name} stops; \`seine resume ${job.name}\` continues it\n`);
      return 'interrupted';
    }
  }
  print(context.stderr, `${name} goes on at the server; see \`seine status ${job.name}\`\n`);
  return 'interrupted';
}

/** What of a terminal is needed to read a key. */
type KeyInput = Pick<ReadStream, 'setRawMode' | 'on' | 'off' | 'resume' | 'pause'>;

/** The next key, without Enter; as text, empty when the terminal is gone. Ctrl-C and Ctrl-D are keys like any other. */
async function readKey(input: KeyInput): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const onData = (bytes: Buffer) => resolve(bytes.toString());
  const onEnd = () => resolve('');
  input.setRawMode(true);
  input.on('data', onData);
  input.on('end', onEnd);
  input.on('error', onEnd);
  input.resume();
  try {
    return await promise;
  } finally {
    input.off('data', onData);
    input.off('end', onEnd);
    input.off('error', onEnd);
    input.pause();
    input.setRawMode(false);
  }
}
