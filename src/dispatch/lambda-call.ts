import type { LoadedLambda } from '../aws/lambda-client.ts';
import { hasNotRun, isThrottled } from '../aws/lambda-errors.ts';
import { messageOf } from '../core/errors.ts';
import type { CostBook } from './lambda-cost.ts';
import { functionErrorOf, isBrokenCode, type LambdaFunction } from './lambda-function.ts';
import type { LambdaAnswer } from './lambda-wire.ts';

/** What one call came to. `unstarted`: for certain nothing of the batch was begun. */
export type Call =
  | { kind: 'answered'; answer: LambdaAnswer }
  | { kind: 'throttled' }
  | { kind: 'unstarted'; reason: string }
  | { kind: 'lost'; reason: string };

/** A function may take its whole time, and before that ten seconds to start, and the network has its share. */
const ANSWER_AFTER_MS = 20_000;

/** Invokes once, and waits for the answer. Never rejects. */
export async function callFunction(
  target: LambdaFunction,
  payload: Uint8Array,
  { lambda, aborter, costs }: { lambda: LoadedLambda; aborter: AbortController; costs: CostBook },
): Promise<Call> {
  const { sdk, client } = lambda;
  const timer = setTimeout(() => aborter.abort(), target.timeoutMs + ANSWER_AFTER_MS);
  const sentAt = performance.now();
  try {
    const reply = await client.send(
      new sdk.InvokeCommand({
        FunctionName: target.name,
        InvocationType: 'RequestResponse',
        LogType: 'Tail',
        Payload: payload,
      }),
      { abortSignal: aborter.signal },
    );
    costs.add({ logResult: reply.LogResult, waitedMs: performance.now() - sentAt }, target);
    return callOf(target.name, Buffer.from(reply.Payload ?? []).toString('utf8'), reply.FunctionError);
  } catch (error) {
    if (aborter.signal.aborted)
      return { kind: 'lost', reason: `the function ${target.name} did not answer in time` };
    if (isThrottled(error)) return { kind: 'throttled' };
    const reason = `the function ${target.name} could not be invoked: ${messageOf(error)}`;
    return { kind: hasNotRun(error) ? 'unstarted' : 'lost', reason };
  } finally {
    clearTimeout(timer);
  }
}

function callOf(name: string, payload: string, functionError: string | undefined): Call {
  if (!functionError) return { kind: 'answered', answer: JSON.parse(payload) };
  const reason = `the function ${name} failed: ${functionErrorOf(payload)}`;
  return { kind: isBrokenCode(payload) ? 'unstarted' : 'lost', reason };
}
