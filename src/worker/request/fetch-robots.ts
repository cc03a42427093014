import type { RobotsFetch } from '../../core/batch/batch.ts';
import type { RobotsOutcome, Trace } from '../../core/batch/outcome.ts';
import { failureOfStatus } from '../../core/failures.ts';
import { LIMITS } from '../../core/limits.ts';
import { decodeRobots } from '../../core/robots/robots.ts';
import { normalizeUrl } from '../../core/url/url.ts';
import { headerOf } from '../page/page.ts';
import { sendThrough } from './send.ts';
import type { VisitContext } from './visit.ts';

/** robots.txt by RFC 9309: 4xx means no rules, 5xx and silence mean "ask later", redirects are followed by the coordinator. */
export async function fetchRobots(fetch: RobotsFetch, context: VisitContext): Promise<RobotsOutcome> {
  const { job, clock } = context;
  const { origin } = fetch;
  const startedAt = clock.now();
  const { result, proxy } = await sendThrough(fetch, false, context, (through) =>
    context.fetcher.fetch({
      url: fetch.url,
      headers: job.headers,
      timeouts: job.spec.timeouts,
      bodyBytesMax: LIMITS.bodyBytesMax,
      parallel: context.parallel,
      allowPrivate: job.spec.allowPrivate,
      privateServices: job.spec.privateServices,
      proxy: through,
      signal: context.signal,
      onSent: context.onSent,
    }),
  );
  if (result.kind === 'aborted') return { kind: 'deferred', origin };
  const trace: Trace = {
    startedAt,
    durationMs: clock.now() - startedAt,
    httpStatus: null,
    bytes: 0,
    ...(proxy === null ? {} : { via: { rung: 0, fetcher: 'http', identity: null, proxy } }),
  };
  if (result.kind === 'failure' && result.code === 'proxy') {
    // The host was not asked at all.
    context.proxies?.blame(proxy);
    return { kind: 'deferred', origin };
  }
  if (result.kind === 'failure')
    return { kind: 'failed', origin, code: result.code, detail: result.detail, trace };
  trace.httpStatus = result.status;
  trace.bytes = result.wireBody.length;
  if (result.status >= 300 && result.status < 400) {
    const target = normalizeUrl(headerOf(result.rawHeaders, 'location') ?? '', fetch.url, job.spec.url);
    return target ? { kind: 'redirected', origin, to: target.url, trace } : { kind: 'absent', origin, trace };
  }
  const code = failureOfStatus(result.status);
  if (code === null) {
    return {
      kind: 'text',
      origin,
      text: decodeRobots(result.body),
      trace,
    };
  }
  if (result.status >= 400 && result.status < 500 && result.status !== 429)
    return { kind: 'absent', origin, trace };
  return { kind: 'failed', origin, code, detail: `status ${result.status}`, trace };
}
