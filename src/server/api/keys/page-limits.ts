import { Readable } from 'node:stream';
import type { AccessControl, ApiContext, Caller, RoutePlugin } from '../requests/access.ts';
import { Problem } from '../requests/problems.ts';

/** Pages of a request count against the limits of its key before they are accepted. */
export const pageLimits: RoutePlugin = (app, { access }) => {
  app.addHook('preHandler', async (request) => {
    const { url } = request.routeOptions;
    if (request.method !== 'POST') return;
    if (url?.endsWith('/scrape') || url?.endsWith('/scrape/async')) await admit(access, request.caller, 1);
    if (!url?.endsWith('/batch')) return;
    if (request.body instanceof Readable)
      request.body = Readable.from(countedLines(request.body, access, request.caller), { objectMode: false });
    else {
      const { urls } = (request.body ?? {}) as { urls?: unknown };
      if (Array.isArray(urls)) await admit(access, request.caller, urls.length);
    }
  });
};

/** A list of any length is counted as it comes. */
async function* countedLines(
  body: Readable,
  access: AccessControl,
  caller: Caller,
): AsyncGenerator<Buffer, void, void> {
  let isOpen = false;
  for await (const part of body as AsyncIterable<Buffer>) {
    const lines = part.reduce((sum, byte) => sum + (byte === 10 ? 1 : 0), 0);
    if (lines > 0) await admit(access, caller, lines);
    if (part.length > 0) isOpen = part.at(-1) !== 10;
    yield part;
  }
  // The last line needs no end.
  if (isOpen) await admit(access, caller, 1);
}

export async function admit(access: AccessControl, caller: Caller, pages: number): Promise<void> {
  const refused = await access.admit(caller, { pages });
  if (!refused) return;
  const { detail, retryAfterSeconds } = refused;
  throw new Problem('rate-limited', detail, { headers: { 'retry-after': String(retryAfterSeconds ?? 10) } });
}

const DAY_MS = 86_400_000;

/** Pages that are fetched already, or will be: they count, and nothing is refused any more. */
export async function notePages({ store, now }: ApiContext, { keyId }: Caller, pages: number): Promise<void> {
  if (keyId === null || pages === 0) return;
  const day = Math.floor(now() / DAY_MS);
  await store.keys.use(keyId, day, { pages, cost: 0 }, { pages: null, cost: null });
}
