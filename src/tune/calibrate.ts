import { detectBlock } from '../core/blocking/block-detection.ts';
import {
  Calibration,
  type CalibrationAnswer,
  type CalibrationLimits,
  type Purpose,
} from '../core/calibration/calibration.ts';
import { type HostProfile, profileOf, startRateFor } from '../core/calibration/host-profile.ts';
import { SeineError } from '../core/errors.ts';
import { isThrottling } from '../core/failures.ts';
import type { JobSpec } from '../core/job-schema/job.ts';
import { LIMITS } from '../core/limits.ts';
import type { HostPace } from '../core/pace/pace.ts';
import { compileHostLimits } from '../core/politeness/host-limits.ts';
import { parseRetryAfter } from '../core/retry/retry.ts';
import { decodeRobots, delayOf, parseRobots, productToken } from '../core/robots/robots.ts';
import { isTimeout, type Runtime } from '../core/timeouts/task-timeout.ts';
import { type Clock, startTimer } from '../ports/ambient.ts';
import type { Fetcher, FetchResponse, FetchResult } from '../ports/fetcher.ts';
import { headerOf } from '../worker/page/page.ts';

/** What a calibration says while it runs. */
export interface CalibrationProgress {
  host: string;
  purpose: Purpose;
  rate: number;
  requests: number;
  refusals: number;
  isProbing: boolean;
}

interface CalibrateOptions {
  host: string;
  /** Pages of the host; they are requested in turn, again and again where there are few. */
  urls: readonly string[];
  spec: JobSpec;
  headers: Record<string, string>;
  fetcher: Pick<Fetcher, 'fetch'>;
  clock: Clock;
  signal: AbortSignal;
  requestsMax: number | null;
  refusalsMax: number;
  /** What runs have learned of the host; null when nothing was. */
  pace: HostPace | null;
  onProgress?: (progress: CalibrationProgress) => void;
}

/** Where the job has no limit of its own: no site takes more from one crawler without being asked. */
const RATE_MAX = 500;
const ROBOTS_HOPS_MAX = 5;
const RUNTIMES_MAX = 5_000;
const PROGRESS_MS = 1_000;

/** Calibrates one host with real requests. */
export async function calibrate(options: CalibrateOptions): Promise<HostProfile> {
  const { host, spec, clock, signal } = options;
  const { urls, delayMs } = await allowedUrls(options);
  const limits = limitsOf(spec, host, delayMs, options);
  const calibration = new Calibration(limits, clock.now());
  const runtimes: Runtime[] = [];
  let wake = () => {};
  let underWay = 0;
  let toldAt = 0;
  let next = 0;
  const tell = () => {
    if (clock.now() - toldAt < PROGRESS_MS) return;
    toldAt = clock.now();
    const { purpose, rate } = calibration.run;
    options.onProgress?.({ host, purpose, rate, ...calibration.counts, isProbing: calibration.isProbing });
  };
  const request = async (url: string) => {
    const sentAt = clock.now();
    calibration.sent(sentAt);
    underWay++;
    const result = await send(url, options, limits.parallelMax);
    underWay--;
    const ms = clock.now() - sentAt;
    const answer = answerOf(result, clock.now(), spec);
    if (runtimes.length < RUNTIMES_MAX && result.kind !== 'aborted' && answer.kind !== 'refused')
      runtimes.push({ ms, isCut: result.kind === 'failure' && isTimeout(result.code) });
    calibration.answered(clock.now(), sentAt, answer);
    wake();
  };
  while (!signal.aborted) {
    const step = calibration.next(clock.now());
    if (step.kind === 'done') break;
    tell();
    if (step.kind === 'send' && step.at <= clock.now()) {
      void request(urls[next++ % urls.length]!);
      continue;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    const cancel =
      step.kind === 'send' ? startTimer(clock, Math.max(0, step.at - clock.now()), resolve) : null;
    const stop = () => resolve();
    signal.addEventListener('abort', stop, { once: true });
    await promise;
    signal.removeEventListener('abort', stop);
    cancel?.();
  }
  while (underWay > 0 && !signal.aborted)
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  if (signal.aborted)
    throw new SeineError(`calibration of ${host} was stopped`, { hint: 'nothing was kept; start it again' });
  return profileOf(host, calibration.result(), runtimes, clock.now());
}

function limitsOf(
  spec: JobSpec,
  host: string,
  delayMs: number | null,
  { requestsMax, refusalsMax, pace, clock }: CalibrateOptions,
): CalibrationLimits {
  const { rate, parallel } = compileHostLimits(spec)(host);
  const cap = Math.min(rate, RATE_MAX, delayMs === null || delayMs === 0 ? RATE_MAX : 1_000 / delayMs);
  const startRate = startRateFor(pace, cap, clock.now());
  return { cap, startRate, parallelMax: parallel, requestsMax, refusalsMax };
}

/** What robots.txt allows of the pages, and the delay that it asks for. */
async function allowedUrls(options: CalibrateOptions): Promise<{ urls: string[]; delayMs: number | null }> {
  const { spec, urls, headers } = options;
  if (!spec.politeness.robots) return { urls: [...urls], delayMs: null };
  const product = productToken(headers['user-agent'] ?? '');
  const delays: number[] = [];
  const allowed: string[] = [];
  for (const origin of new Set(urls.map((url) => new URL(url).origin))) {
    const rules = parseRobots(await robotsText(`${origin}/robots.txt`, options), product);
    delays.push(delayOf(rules) ?? 0);
    allowed.push(...urls.filter((url) => new URL(url).origin === origin && rules.allows(url)));
  }
  if (allowed.length === 0)
    throw new SeineError(`robots.txt of ${options.host} allows none of the pages`, {
      hint: 'name other pages of the host',
    });
  return { urls: allowed, delayMs: Math.max(...delays) };
}

async function robotsText(url: string, options: CalibrateOptions): Promise<string> {
  let at = url;
  for (let hop = 0; hop <= ROBOTS_HOPS_MAX; hop++) {
    const result = await send(at, options, 1);
    if (result.kind !== 'response')
      throw new SeineError(`robots.txt of ${options.host} cannot be read`, {
        hint: result.kind === 'failure' ? result.detail : 'it was stopped',
      });
    if (result.status < 300) return decodeRobots(result.body);
    const location = headerOf(result.rawHeaders, 'location');
    if (result.status < 400 && location !== null && URL.canParse(location, at)) {
      at = new URL(location, at).href;
      continue;
    }
    if (result.status >= 500 || result.status === 429)
      throw new SeineError(`robots.txt of ${options.host} answers with status ${result.status}`, {
        hint: 'try again later',
      });
    return '';
  }
  return '';
}

function send(url: string, options: CalibrateOptions, parallel: number): Promise<FetchResult> {
  const { spec, headers, fetcher, signal } = options;
  return fetcher.fetch({
    ...{ url, headers, signal, parallel },
    timeouts: spec.timeouts,
    bodyBytesMax: LIMITS.bodyBytesMax,
    allowPrivate: spec.allowPrivate,
    onSent: () => true,
  });
}

const FORBIDDEN = 403;

/** 429, and 503 with Retry-After, ask for fewer requests; 403 or a page that is a challenge ends it. */
function answerOf(result: FetchResult, now: number, spec: JobSpec): CalibrationAnswer {
  if (result.kind !== 'response') return { kind: 'failed' };
  const { status, rawHeaders } = result;
  const retryAfterMs = parseRetryAfter(headerOf(rawHeaders, 'retry-after'), now);
  if (status === 429 || (status === 503 && retryAfterMs !== null && isThrottling('server-error', status)))
    return { kind: 'refused', retryAfterMs };
  if (status === FORBIDDEN || isChallenge(result, spec)) return { kind: 'blocked' };
  return { kind: status >= 500 ? 'failed' : 'answered' };
}

function isChallenge(response: FetchResponse, spec: JobSpec): boolean {
  const isHtml = /html/i.test(headerOf(response.rawHeaders, 'content-type') ?? 'html');
  return detectBlock({ ...response, isHtml }, spec.blocking) !== null;
}
