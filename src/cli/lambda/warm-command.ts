import { loadLambda } from '../../aws/lambda/lambda-client.ts';
import { lambdaOf } from '../../config/load.ts';
import { SeineError } from '../../core/errors.ts';
import { warmFunction } from '../../transport/lambda/warm-function.ts';
import { type Command, printJson } from '../context.ts';
import { functionName, numberOption } from './option-values.ts';

export const warmCommand: Command = async (context) => {
  const name = functionName(context);
  const count = numberOption(context, 'count', { min: 1, max: 10_000, otherwise: 10 });
  const place = lambdaOf(context.loaded.config);
  const lambda = await loadLambda(place, { sockets: count });
  const { warm, made, refused } = await warmFunction(lambda, name, place, count).finally(() =>
    lambda.client.destroy(),
  );
  if (context.json) printJson(context, { function: name, warm, made, refused });
  else {
    const more =
      refused > 0 ? `; Lambda refused ${refused} calls: the concurrency limit of the account is reached` : '';
    context.stdout.write(`${warm} environments of ${name} are warm, ${made} of them new${more}\n`);
  }
  if (warm === 0) throw new SeineError('Lambda refused every call', { hint: 'raise its concurrency limit' });
  return 'success';
};
