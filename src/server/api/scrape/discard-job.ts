import type { Job } from '../../../ports/store.ts';
import type { ApiContext } from '../requests/access.ts';

/**
 * A job whose request is refused after all: it is deleted, with what was written down of it. One that somebody works on already
 * is cancelled, and stays.
 */
export async function discardJob(
  { store, runner, server, now }: Pick<ApiContext, 'store' | 'runner' | 'server' | 'now'>,
  { id }: Pick<Job, 'id'>,
): Promise<void> {
  await store.jobs.update(id, { state: 'cancelled', requestedState: 'cancel', endedAt: now() });
  if ((await runner.has(id)) || (await store.jobs.atWork(id)) > 0) return runner.wake(id);
  if (await store.removals.mark(id, now())) await server.removeJobs();
}
