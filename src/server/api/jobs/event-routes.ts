import { Readable } from 'node:stream';
import type { Job } from '../../../ports/store.ts';
import type { ApiContext, Caller, RoutePlugin } from '../requests/access.ts';
import { jobOf, requireScope } from '../requests/callers.ts';
import { OpenRequests } from '../requests/open-requests.ts';
import { Problem } from '../requests/problems.ts';
import { hasEnded } from '../scrape/results.ts';
import { viewOf } from './job-routes.ts';
import { attemptOf } from './row-routes.ts';

/** What a job does, as it happens: server-sent events from the stored attempts, so that a reconnect misses none. */

/** Each looks into the store once a second. */
const STREAMS_MAX = 200;
const STREAMS_OF_KEY_MAX = 50;
const LOOK_MS = 1_000;
/** Proxies close connections on which nothing comes, often after a minute. */
const HEARTBEAT_MS = 15_000;
const ROWS_AT_ONCE = 500;

export const eventRoutes: RoutePlugin = (app, context) => {
  const streams = new OpenRequests({
    what: 'streams of events',
    max: STREAMS_MAX,
    keyMax: STREAMS_OF_KEY_MAX,
  });

  app.get<{ Params: { id: string } }>('/jobs/:id/events', async (request, reply) => {
    requireScope(request.caller, 'read');
    const after = lastEventOf(request.headers['last-event-id']);
    const { job } = await jobOf(context, request.params.id, request.caller);
    const { caller } = request;
    const { signal } = streams.takeStream(caller, reply);
    const events = Readable.from(eventsOf(context, job, { after, signal, caller }), {
      objectMode: false,
      highWaterMark: 1,
    });
    // Nothing comes on the connection of a stream that has ended.
    return reply.headers({ 'content-type': 'text/event-stream', connection: 'close' }).send(events);
  });
};

function lastEventOf(given: string | string[] | undefined): number {
  if (given === undefined || given === '') return 0;
  if (!/^\d{1,15}$/.test(String(given)))
    throw new Problem('bad-cursor', 'Last-Event-ID: not one of this stream');
  return Number(given);
}

/** The next rows are read when the client has taken those before. */
async function* eventsOf(
  context: ApiContext,
  job: Job,
  { after, signal, caller }: { after: number; signal: AbortSignal; caller: Caller },
): AsyncGenerator<string, void, void> {
  const { access, reads, now } = context;
  let from = after;
  let sentAt = now();
  yield ': events of a job\n\n';
  while (!signal.aborted && (await access.isKnown(caller))) {
    // Before the attempts are read: one that has ended by now writes no more of them.
    const view = await viewOf(context, await reads.jobs.get(job.id));
    const step = await reads.views.attemptStep(job.id, { after: from, limit: ROWS_AT_ONCE });
    from = step.after;
    if (step.rows.length > 0)
      yield step.rows.map((row) => eventOf('attempt', attemptOf(row), row.id)).join('');
    else if (now() - sentAt >= HEARTBEAT_MS) yield ':\n\n';
    else if (!step.isEnd || !hasEnded(view.status)) {
      if (step.isEnd) await pause(LOOK_MS, signal);
      continue;
    }
    sentAt = now();
    if (!step.isEnd || !hasEnded(view.status)) continue;
    yield eventOf('end', view);
    return;
  }
}

function eventOf(name: string, data: object, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
