import type { Batch, BatchProxy, BatchTask } from '../../core/batch/batch.ts';
import { messageOf } from '../../core/errors.ts';
import type { FetcherKind, FetchMethod, Via } from '../../core/escalation/escalation.ts';
import type { Fetcher, FetchRequest, FetchResult } from '../../ports/fetcher.ts';
import type { CompiledJob } from '../job/compiled-job.ts';
import type { BatchProxies, Sent } from './batch-proxies.ts';
import type { BatchCookies } from './cookies.ts';
import { type IdentitySources, requestHeaders } from './identity.ts';

export interface SendContext extends IdentitySources {
  job: CompiledJob;
  fetcher: Fetcher;
  /** The other ways to fetch, opened when they are first needed; rejects where this worker has none. */
  fetcherOf?: (kind: Exclude<FetcherKind, 'http'>) => Promise<Fetcher>;
  /** There when the job keeps cookies. */
  cookies?: BatchCookies | null;
  /** There when the batch brought proxies. */
  proxies?: BatchProxies | null;
  /** Key of the remote scraping API. */
  apiKey?: string | null;
  /** Tells jobs apart, also those of different stores. */
  jobKey?: string;
  /** What a browser starts with. */
  loginState?: string | null;
}

/** Sends a request the way its fetch method says: what it looks like, what carries it, and whose cookies go with it. */
export async function sendBy(
  fetchMethod: FetchMethod,
  task: BatchTask,
  context: SendContext,
  request: Omit<FetchRequest, 'headers'>,
  conditions: Record<string, string>,
): Promise<{ result: FetchResult; via: Via }> {
  const { level, fetcher: kind, identity } = fetchMethod;
  const renders = kind === 'browser';
  const via: Via = { rung: level, fetcher: kind, identity, proxy: null };
  const fetcher = await fetcherFor(kind, context);
  if (typeof fetcher === 'string')
    return { result: { kind: 'failure', code: 'internal', detail: fetcher, bytes: 0 }, via };
  const keepsCookies = identity === null ? context.job.spec.identity.cookies === true : true;
  const cookies = keepsCookies ? context.cookies : null;
  const cookie = cookies?.headerFor(task.url, identity) ?? null;
  // A page that has not changed must be there all the same for a browser to show it.
  const further = { ...(cookie === null ? {} : { Cookie: cookie }), ...(renders ? {} : conditions) };
  const destination = request.sinkFor ? 'image' : 'document';
  const identified = await requestHeaders(task, fetchMethod, context.job, further, destination, context);
  const { spec } = context.job;
  const api = kind === 'api' && spec.api ? { spec: spec.api, key: context.apiKey ?? null } : undefined;
  const state = renders
    ? { loginState: context.loginState ?? undefined, visitor: `${context.jobKey ?? ''} ${identity ?? ''}` }
    : { render: undefined };
  const { result: received, proxy } = await sendThrough(task, fetchMethod.pool !== null, context, (through) =>
    fetcher.fetch({ ...request, ...identified, ...state, proxy: through, api }),
  );
  const result = asRendered(received);
  via.proxy = proxy;
  if (result.kind === 'response' && result.cost !== undefined) via.cost = result.cost;
  if (result.kind === 'response') cookies?.take(task.url, identity, result.rawHeaders);
  return { result, via };
}

/** The page that a browser made is not the one that was sent: how that was coded and lettered says nothing of it. */
function asRendered(result: FetchResult): FetchResult {
  if (result.kind !== 'response' || !result.rendered) return result;
  const rawHeaders = ['Content-Type', 'text/html; charset=utf-8'];
  for (let index = 0; index + 1 < result.rawHeaders.length; index += 2) {
    const name = result.rawHeaders[index]!;
    if (!OF_THE_BYTES.has(name.toLowerCase())) rawHeaders.push(name, result.rawHeaders[index + 1]!);
  }
  return { ...result, rawHeaders, wireBody: result.body };
}

const OF_THE_BYTES = new Set(['content-type', 'content-encoding', 'content-length', 'transfer-encoding']);

async function fetcherFor(kind: FetcherKind, context: SendContext): Promise<Fetcher | string> {
  if (kind === 'http') return context.fetcher;
  try {
    if (context.fetcherOf) return await context.fetcherOf(kind);
  } catch (error) {
    return messageOf(error);
  }
  return `this worker has no fetcher of kind ${kind}`;
}

/** Through a proxy where one is wanted, and never without it: a request from here would show the own address. */
export async function sendThrough(
  asked: Pick<BatchTask, 'url' | 'through'>,
  wantsProxy: boolean,
  { proxies }: Pick<SendContext, 'proxies'>,
  fetch: (proxy: BatchProxy | undefined) => Promise<FetchResult>,
): Promise<Sent> {
  if (asked.through && proxies) return proxies.send(asked.through, new URL(asked.url).host, fetch);
  if (!wantsProxy) return { result: await fetch(undefined), proxy: null };
  const detail = 'the batch has no proxy for this task';
  return { result: { kind: 'failure', code: 'proxy', detail, bytes: 0 }, proxy: null };
}

type Fetchers = Pick<SendContext, 'fetcher' | 'fetcherOf'>;

/** Secrets go to their own origin and nowhere else: not after a redirect, not to another port, not over another scheme. */
export function withSecretHeaders<T extends Fetchers>(
  tools: T,
  secrets: NonNullable<Batch['secretHeaders']>,
): T {
  const wrap = (fetcher: Fetcher): Fetcher => ({
    async fetch(request) {
      const own = request.api ? undefined : secrets[URL.parse(request.url)?.origin ?? ''];
      // An API fetches from addresses of its own, and is told nothing that is meant for the site.
      return own
        ? withoutNames(await fetcher.fetch(withOwnHeaders(request, own)), own)
        : fetcher.fetch(request);
    },
    ...(fetcher.prepare ? { prepare: () => fetcher.prepare!() } : {}),
    close: () => fetcher.close(),
  });
  const { fetcherOf } = tools;
  return {
    ...tools,
    fetcher: wrap(tools.fetcher),
    ...(fetcherOf ? { fetcherOf: async (kind) => wrap(await fetcherOf(kind)) } : {}),
  } satisfies Fetchers as T;
}

function withOwnHeaders(request: FetchRequest, own: Record<string, string>): FetchRequest {
  const names = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  const others = Object.entries(request.headers).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...request, hasSecrets: true, headers: { ...Object.fromEntries(others), ...own } };
}

/** What was sent is archived: secrets are not part of it. */
function withoutNames(result: FetchResult, own: Record<string, string>): FetchResult {
  if (result.kind !== 'response') return result;
  const names = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  const without = (sent: readonly string[]) => {
    const kept: string[] = [];
    for (let i = 0; i + 1 < sent.length; i += 2)
      if (!names.has(sent[i]!.toLowerCase())) kept.push(sent[i]!, sent[i + 1]!);
    return kept;
  };
  const { requestHeaders, rendered } = result;
  const resources = rendered?.resources?.map((each) => ({
    ...each,
    requestHeaders: without(each.requestHeaders),
  }));
  return {
    ...result,
    ...(requestHeaders && { requestHeaders: without(requestHeaders) }),
    ...(rendered && resources && { rendered: { ...rendered, resources } }),
  };
}
