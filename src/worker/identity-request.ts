import type { BatchTask } from '../core/batch/batch.ts';
import type { Approach } from '../core/escalation/escalation.ts';
import {
  browserHeaders,
  DEFAULT_LANGUAGES,
  type PageRequest,
  placeHeaders,
} from '../core/identity/browser-headers.ts';
import { type EmulatedBrowser, emulatedProfile } from '../core/identity/browser-profile.ts';
import { refererFor } from '../core/url/referrer.ts';
import type { CompiledJob } from './compile-job.ts';
import { type OpenUserAgents, profileOf, seedOf } from './identity.ts';

interface RequestLook {
  headers: Record<string, string>;
  emulate?: EmulatedBrowser;
}

/** What a request looks like under its approach. `further` are cookies and conditions. */
export async function lookOf(
  task: BatchTask,
  approach: Approach,
  job: CompiledJob,
  further: Record<string, string>,
  destination: PageRequest['destination'],
  openUserAgents: OpenUserAgents | undefined,
): Promise<RequestLook> {
  const { identity } = job.spec;
  if (approach.identity === null) return { headers: { ...job.headers, ...further } };
  // A real browser has headers of its own, and an API sends what it likes.
  if (approach.fetcher === 'browser' || approach.fetcher === 'api')
    return { headers: placeHeaders(null, identity.headers, further) };
  const impersonates = approach.fetcher === 'impersonate';
  const { profile, ...look } = impersonates
    ? emulatedProfile(seedOf(approach.identity), identity.device)
    : { profile: await profileOf(approach.identity, identity.device, openUserAgents) };
  const headers = browserHeaders(profile, approach.headers, {
    url: task.url,
    referer: refererOf(task),
    languages: identity.languages ?? DEFAULT_LANGUAGES,
    destination,
    http2: impersonates && task.url.startsWith('https:'),
  });
  return { ...look, headers: placeHeaders(profile, headers, { ...identity.headers, ...further }) };
}

/**
 * The page that links here. Where it is not known, a followed link is one of the site's own, and its front page is the
 * likeliest to lead there; what a source names was typed in.
 */
function refererOf({ url, depth, referrer }: BatchTask): string | null {
  if (referrer !== undefined) return refererFor(referrer, url);
  if (depth === 0) return null;
  const front = url.slice(0, url.indexOf('/', url.indexOf('://') + 3) + 1);
  return front === url || front === '' ? null : front;
}
