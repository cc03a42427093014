import { loadLambda } from '../../aws/lambda/lambda-client.ts';
import { lambdaOf } from '../../config/load.ts';
import { SeineError } from '../../core/errors.ts';
import { askFunctionStatus } from '../../transport/lambda/lambda-function.ts';
import { type Command, printJson } from '../context.ts';
import { functionName, numberOption } from './option-values.ts';

/** An environment that waits cannot take a second call, so calls that wait together get one each. */
const WAIT_MS = 1_000;
/** The last of many calls leaves later than the first. */
const WAIT_MS_EACH = 5;

export const warmCommand: Command = async (context) => {
  const name = functionName(context);
  const count = numberOption(context, 'count', { min: 1, max: 10_000, otherwise: 10 });
  const place = lambdaOf(context.loaded.config);
  const lambda = await loadLambda(place, { sockets: count });
  const waitMs = WAIT_MS + count * WAIT_MS_EACH;
  const answers = await Promise.all(
    Array.from({ length: count }, () => askFunctionStatus(lambda, name, place, { waitMs })),
  ).finally(() => lambda.client.destroy());
  const here = answers.filter((answer) => answer !== null);
  const warm = new Set(here.map(({ environment }) => environment)).size;
  const made = here.filter(({ cold }) => cold).length;
  const refused = count - here.length;
  if (context.json) printJson(context, { function: name, warm, made, refused });
  else {
    const more =
      refused > 0 ? `; Lambda refused ${refused} calls: the concurrency limit of the account is reached` : '';
    context.stdout.write(`${warm} environments of ${name} are warm, ${made} of them new${more}\n`);
  }
  if (warm === 0) throw new SeineError('Lambda refused every call', { hint: 'raise its concurrency limit' });
  return 'success';
};
