import type { StoredPage } from '../core/batch/outcome.ts';
import type { FetchResponse } from '../ports/fetcher.ts';
import type { Archive } from './archive.ts';

/** Puts a response into the batch's archive; null when the job keeps none. Synchronous, see `process-batch`. */
export type Keep = (
  url: string,
  response: FetchResponse,
  at: number,
  sha256: string,
) => StoredPage['archive'];

export const keepNothing: Keep = () => null;

/** Appending is synchronous and is the last step before the outcome, so both land in one part. */
export function pageKeeper(archiveFor: (date: number) => Archive): Keep {
  return (url, response, date, sha256) => {
    const { status, statusText, rawHeaders, wireBody, body, rendered } = response;
    const wireSha256 = wireBody === body ? sha256 : null;
    const page = { url, date, status, statusText, rawHeaders, wireBody, wireSha256 };
    return archiveFor(date).append(page, rendered?.shots);
  };
}
