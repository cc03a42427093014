import { isAnswer, isBanLike } from '../../core/bans/bans.ts';
import type { BatchTask, ProbeResult } from '../../core/batch/batch.ts';
import type { Outcome, RequestFailure } from '../../core/batch/outcome.ts';
import { detectBlock } from '../../core/blocking/block-detection.ts';
import { isHtml, sniffMediaType } from '../../core/media/media-type.ts';
import { headerOf } from '../page/page.ts';
import { failed, type VisitContext, visit } from './visit.ts';

interface KnownPage {
  result: ProbeResult;
  /** There when it failed. */
  failure?: RequestFailure;
}

const ANSWERED: KnownPage = { result: 'answered' };

/**
 * Requests a page that answered before, to see whether the host lets us in. Nothing of it is kept. It is requested as
 * `like` will be. Null when the batch ended before it was known.
 */
export async function fetchKnownPage(
  url: string,
  like: Pick<BatchTask, 'fetchMethod' | 'through'> | undefined,
  context: VisitContext,
): Promise<KnownPage | null> {
  const task: BatchTask = {
    ...{ id: 0, url, permit: 0, depth: 0, route: null, attempt: 1, hops: 0, meta: null, lastVisit: null },
    ...(like?.fetchMethod ? { fetchMethod: like.fetchMethod } : {}),
    ...(like?.through ? { through: like.through } : {}),
  };
  const answer = await visit(task, context, { bodyBytesMax: context.job.spec.limits.bodyBytes });
  if (answer.kind === 'redirect') return ANSWERED;
  const outcome = answer.kind === 'over' ? answer.outcome : blockIn(answer);
  if (outcome === null) return ANSWERED;
  if (outcome.kind === 'deferred') return null;
  // Too large to be read, or broken on the way: the host did answer.
  if (outcome.kind !== 'failed' || isAnswer(outcome) || BROKEN.has(outcome.code)) return ANSWERED;
  if (isBanLike(outcome)) return { result: 'refused' };
  const { code, detail, trace } = outcome;
  return { result: 'failed', failure: { code, detail, trace } };
}

const BROKEN: ReadonlySet<string> = new Set(['too-large', 'bad-encoding', 'truncated']);

function blockIn({
  response,
  trace,
}: Extract<Awaited<ReturnType<typeof visit>>, { kind: 'response' }>): Outcome | null {
  const contentType = sniffMediaType(response.body, headerOf(response.rawHeaders, 'content-type'));
  const block = detectBlock({ ...response, isHtml: isHtml(contentType) });
  return block && failed(0, block.code, block.evidence, trace);
}
