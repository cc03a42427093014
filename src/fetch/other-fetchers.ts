import type { FetcherKind } from '../core/approach.ts';
import { SeineError } from '../core/errors.ts';
import type { Fetcher } from '../ports/fetcher.ts';
import type { HttpFetcherOptions } from './http-fetcher.ts';

type OtherKind = Exclude<FetcherKind, 'http'>;

/** Fetchers that few jobs want: each is loaded and opened when it is first asked for. */
export interface OtherFetchers {
  of(kind: OtherKind): Promise<Fetcher>;
  close(): Promise<void>;
}

export function openOtherFetchers(options: HttpFetcherOptions): OtherFetchers {
  const opening = new Map<OtherKind, Promise<Fetcher>>();
  return {
    of(kind) {
      const known = opening.get(kind) ?? openFetcher(kind, options);
      opening.set(kind, known);
      return known;
    },
    async close() {
      const opened = await Promise.allSettled(opening.values());
      await Promise.all(opened.map((each) => (each.status === 'fulfilled' ? each.value.close() : null)));
    },
  };
}

async function openFetcher(kind: OtherKind, options: HttpFetcherOptions): Promise<Fetcher> {
  if (kind === 'api') {
    const { openRemoteApiFetcher } = await import('./remote-api-fetcher.ts');
    return openRemoteApiFetcher(options);
  }
  if (kind !== 'impersonate') throw new SeineError(`this worker has no fetcher of kind ${kind}`);
  const { openImpersonateFetcher } = await import('./impersonate-fetcher.ts');
  return openImpersonateFetcher(options);
}
