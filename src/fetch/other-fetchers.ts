import type { FetcherKind } from '../core/escalation/escalation.ts';
import type { Fetcher } from '../ports/fetcher.ts';
import type { BrowserFetcherOptions } from './browser/browser-fetcher.ts';
import type { RemoteApiOptions } from './remote-api/remote-api-fetcher.ts';

type OtherKind = Exclude<FetcherKind, 'http'>;

/** Fetchers that few jobs want: each is loaded and opened when it is first asked for. */
interface OtherFetchers {
  of(kind: OtherKind): Promise<Fetcher>;
  close(): Promise<void>;
}

type OtherFetcherOptions = RemoteApiOptions & Pick<BrowserFetcherOptions, 'browser' | 'logger'>;

export function openOtherFetchers(options: OtherFetcherOptions): OtherFetchers {
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

async function openFetcher(kind: OtherKind, options: OtherFetcherOptions): Promise<Fetcher> {
  if (kind === 'api') {
    const { openRemoteApiFetcher } = await import('./remote-api/remote-api-fetcher.ts');
    return openRemoteApiFetcher(options);
  }
  if (kind === 'browser') {
    const { openBrowserFetcher } = await import('./browser/browser-fetcher.ts');
    return openBrowserFetcher(options);
  }
  const { openImpersonateFetcher } = await import('./impersonate/impersonate-fetcher.ts');
  return openImpersonateFetcher(options);
}
