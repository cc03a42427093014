import type { Folder } from '../app/folder.ts';
import type { RunView } from '../coordinator/reports/run-view.ts';
import type { Job } from '../ports/store.ts';
import { readServerFile, type ServerFile } from '../server/server-file.ts';
import { isFolderLocked } from '../store/sqlite/connection/folder-lock.ts';
import type { RunEnd } from './commands/run/follow-run.ts';

/** The server answers from memory and a few rows. */
const ANSWER_MS = 10_000;

/** The server that owns the folder, if one does. */
export async function serverOf({ dir }: Folder): Promise<ServerFile | null> {
  const server = readServerFile(dir);
  // What a killed server left behind does not count.
  return server && isFolderLocked(dir) ? server : null;
}

interface Followed {
  view: RunView | null;
  end: RunEnd | null;
}

export async function callServer(
  server: ServerFile,
  method: 'GET' | 'POST',
  job: Job,
): Promise<Partial<Followed>> {
  const response = await fetch(`${server.url}/internal/jobs/${job.id}`, {
    method,
    headers: { authorization: `Bearer ${server.token}` },
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  if (!response.ok) throw new Error(`the server answered with status ${response.status}`);
  return (await response.json()) as Partial<Followed>;
}

/** What the server shows of a job that it runs; null when it runs it no longer, or does not answer. */
export async function servedView(server: ServerFile, job: Job): Promise<RunView | null> {
  return (await callServer(server, 'GET', job).catch(() => null))?.view ?? null;
}

/** Has the server look for tasks of the job at once. One that does not answer finds them a moment later. */
export async function wakeServed(server: ServerFile, job: Job): Promise<void> {
  await callServer(server, 'POST', job).catch(() => {});
}

/** Has the server of the folder go on with a job that was over or stopped. */
export async function resumeServed({ store }: Folder, server: ServerFile, job: Job): Promise<void> {
  await store.jobs.update(job.id, { state: 'running', requestedState: 'run', reason: null, endedAt: null });
  await wakeServed(server, job);
}
