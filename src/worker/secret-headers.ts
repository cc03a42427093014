import type { Batch } from '../core/batch/batch.ts';
import type { Fetcher, FetchRequest } from '../ports/fetcher.ts';
import type { SendContext } from './send.ts';

type Fetchers = Pick<SendContext, 'fetcher' | 'fetcherOf'>;

/** Secrets go to their own origin and nowhere else: not after a redirect, not to another port, not over another scheme. */
export function withSecretHeaders<T extends Fetchers>(
  tools: T,
  secrets: NonNullable<Batch['secretHeaders']>,
): T {
  const dress = (fetcher: Fetcher): Fetcher => ({
    fetch: (request) => fetcher.fetch(dressed(request, secrets)),
    ...(fetcher.prepare ? { prepare: () => fetcher.prepare!() } : {}),
    close: () => fetcher.close(),
  });
  const { fetcherOf } = tools;
  return {
    ...tools,
    fetcher: dress(tools.fetcher),
    ...(fetcherOf ? { fetcherOf: async (kind) => dress(await fetcherOf(kind)) } : {}),
  } satisfies Fetchers as T;
}

function dressed(request: FetchRequest, secrets: Record<string, Record<string, string>>): FetchRequest {
  const own = secrets[URL.parse(request.url)?.origin ?? ''];
  // An API fetches from addresses of its own, and is told nothing that is meant for the site.
  if (!own || request.api) return request;
  const names = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  const others = Object.entries(request.headers).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...request, headers: { ...Object.fromEntries(others), ...own } };
}
