import type { LambdaPlace, LoadedLambda } from '../../aws/lambda/lambda-client.ts';
import { askFunctionStatus } from './lambda-function.ts';

/** An environment that waits cannot take a second call, so calls that wait together get one each. */
const WAIT_MS = 1_000;
/** The last of many calls leaves later than the first. */
const WAIT_MS_EACH = 5;

interface WarmResult {
  /** Environments that are ready now. */
  warm: number;
  /** Those of them that were started for it. */
  made: number;
  /** Calls for which Lambda had no room. */
  refused: number;
}

/** Has so many environments of a function ready, so that the next batches meet no cold start. */
export async function warmFunction(
  lambda: LoadedLambda,
  name: string,
  place: LambdaPlace,
  count: number,
): Promise<WarmResult> {
  const waitMs = WAIT_MS + count * WAIT_MS_EACH;
  const answers = await Promise.all(
    Array.from({ length: count }, () => askFunctionStatus(lambda, name, place, { waitMs })),
  );
  const here = answers.filter((answer) => answer !== null);
  return {
    warm: new Set(here.map(({ environment }) => environment)).size,
    made: here.filter(({ cold }) => cold).length,
    refused: count - here.length,
  };
}
