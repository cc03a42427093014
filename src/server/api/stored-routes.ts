import type { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { toNewTask } from '../../coordinator/sources/new-task.ts';
import type { TaskRow } from '../../core/model.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { Job } from '../../ports/store.ts';
import { readPage } from '../../worker/storage/read-page.ts';
import type { ApiContext, Caller, RoutePlugin } from './requests/access.ts';
import { isAdmin, jobOf, requireScope } from './requests/callers.ts';
import { parseAs, storedQuery } from './requests/options.ts';
import { Problem } from './requests/problems.ts';
import { openStoredBlob } from './stored-blob.ts';

/**
 * Bytes that were fetched, as they came. They are strangers' bytes: a browser that opens them here must neither run their
 * scripts nor take them for a page of this server. The URL says which task they are of, and so whose they are.
 */

const PAGE_BYTES_MAX = 64 * 1024 * 1024;
/** Without `job`, so many of the newest ones are looked through. */
const JOBS_MAX = 100;
const MEDIA_TYPE = /^[\w.+-]{1,60}\/[\w.+-]{1,100}(; ?charset="?[\w-]{1,40}"?)?$/i;
/** The pages of this server run scripts and use styles of their own origin: none of strangers may be among them. */
const ACTIVE_TYPE = /script|\/css|wasm|importmap|manifest/i;
const INERT = {
  'content-security-policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
};

interface Stored {
  type: string | null;
  name: string;
  bytes: Buffer | Readable;
}

export const storedRoutes: RoutePlugin = (app, context) => {
  const { blobs } = context;

  app.get('/pages', async ({ query, caller }, reply) => {
    const { task, inline } = await asked(context, query, caller, ({ archive }) => archive !== null);
    const { archive, sha256 } = task;
    const page = await readPage(blobs, archive!, { bytesMax: PAGE_BYTES_MAX, sha256 }).catch(() => null);
    if (!page) throw new Problem('not-found', 'the stored page cannot be read, or was changed');
    const at = page.headers.findIndex(
      (name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type',
    );
    const type = at === -1 ? null : page.headers[at + 1]!;
    return sendStored(reply, { type, name: 'page', bytes: page.body }, inline);
  });

  app.get<{ Params: { sha256: string } }>('/media/:sha256', async ({ params, query, caller }, reply) => {
    const { sha256 } = params;
    const { task, inline } = await asked(
      context,
      query,
      caller,
      (found) => found.media !== null && found.sha256 === sha256,
    );
    if (task.media!.member !== null) throw new Problem('not-found', 'it is packed together with others');
    const bytes = await openBlob(blobs, task.media!.key);
    return sendStored(reply, { type: task.contentType, name: sha256, bytes }, inline);
  });

  app.get<{ Params: { '*': string } }>('/shots/*', async ({ params, query, caller }, reply) => {
    const key = params['*'];
    const shotOf = ({ shots }: TaskRow) => shots.find((shot) => shot.key === key);
    const { task, inline } = await asked(context, query, caller, (found) => shotOf(found) !== undefined);
    const bytes = await openBlob(blobs, key);
    return sendStored(reply, { type: shotOf(task)!.type, name: key.split('/').at(-1)!, bytes }, inline);
  });
};

async function asked(
  context: ApiContext,
  query: unknown,
  caller: Caller,
  isWanted: (task: TaskRow) => boolean,
): Promise<{ task: TaskRow; inline: boolean }> {
  requireScope(caller, 'read');
  const { url, job, inline } = parseAs(storedQuery, query);
  const jobs =
    job === undefined ? await newestJobs(context, caller) : [(await jobOf(context, job, caller)).job];
  for (const { id, spec } of jobs) {
    const known = toNewTask({ url, meta: null }, spec, 0);
    const task = typeof known === 'string' ? null : await context.store.views.task(id, known.url);
    if (task && isWanted(task)) return { task, inline: inline !== undefined };
  }
  throw new Problem('not-found', 'nothing is stored of this URL');
}

function newestJobs({ reads }: ApiContext, caller: Caller): Promise<Job[]> {
  const owner = isAdmin(caller) || caller.keyId === null ? {} : { owner: caller.keyId };
  return reads.jobs.listBefore({ ...owner, before: Number.MAX_SAFE_INTEGER, limit: JOBS_MAX });
}

async function openBlob(blobs: Blobs, key: string): Promise<Readable> {
  const bytes = await openStoredBlob(blobs, key);
  if (!bytes) throw new Problem('not-found', 'the stored bytes are missing, or were changed');
  return bytes;
}

function sendStored(reply: FastifyReply, { type, name, bytes }: Stored, inline: boolean): FastifyReply {
  const known = type !== null && MEDIA_TYPE.test(type) ? type : 'application/octet-stream';
  const shown = ACTIVE_TYPE.test(known) ? 'text/plain; charset=utf-8' : known;
  if (!inline) reply.header('content-disposition', `attachment; filename="${name.replace(/[^\w.-]/g, '_')}"`);
  // Beyond the text of the page, nothing of another origin may embed it.
  return reply
    .headers({ ...INERT, 'content-type': shown, 'cross-origin-resource-policy': 'same-origin' })
    .send(bytes);
}
