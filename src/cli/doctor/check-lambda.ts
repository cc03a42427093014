import type { LambdaSettings } from '../../app/open-dispatcher.ts';
import { SeineError } from '../../core/errors.ts';
import type { Finding } from './check.ts';

/** Batches are planned for up to a minute; below this too little of it is left. */
const TIMEOUT_MS_MIN = 60_000;
/** A quarter of a core, with which a batch of pages is slower than its hosts. */
const MEMORY_MB_MIN = 512;

/** Looks at the function and has it say what it is, which costs a call. */
export async function checkLambda(
  name: string,
  settings: LambdaSettings | undefined,
  blobs: string,
  fleetKeys: readonly string[],
): Promise<Finding> {
  const { loadLambda } = await import('../../aws/lambda/lambda-client.ts');
  const {
    askFunctionStatus: askPresence,
    checkFleetKey,
    describeFunction,
  } = await import('../../transport/lambda/lambda-function.ts');
  const { openMessageSeal } = await import('../../transport/message-seal.ts');
  const { endpoint = null, region = null, credentials = null } = settings ?? {};
  const place = { endpoint, region, credentials };
  const lambda = await loadLambda(place, { sockets: 2 });
  try {
    const found = await describeFunction(lambda, name, place);
    const here = await askPresence(lambda, name, place);
    if (here && here.blobs !== blobs)
      throw new SeineError(
        here.blobs === null
          ? `the function ${name} has no --blobs setting`
          : `the function ${name} stores pages in ${here.blobs}, but runs from here store them in ${blobs}`,
        {
          hint: 'use the same location for both: `seine lambda deploy --blobs s3://bucket/prefix`, and --blobs here',
        },
      );
    if (here) checkFleetKey(name, here.keyIds ?? [], openMessageSeal(fleetKeys).keyIds);
    const warnings = [
      found === null &&
        'no permission to read its configuration, so costs are estimates: allow lambda:GetFunctionConfiguration',
      here === null && 'Lambda throttles calls now: raise its concurrency limit',
      found &&
        found.timeoutMs < TIMEOUT_MS_MIN &&
        `its timeout of ${found.timeoutMs / 1_000} s is short: set 300 s`,
      found && found.memoryMb < MEMORY_MB_MIN && `its memory of ${found.memoryMb} MB is small: set 1024 MB`,
    ].filter((warning) => typeof warning === 'string');
    const size = found ? `, ${found.memoryMb} MB, ${found.timeoutMs / 1_000} s` : '';
    return {
      detail: `the function ${name} ${here ? `answers as Seine ${here.seine}` : 'exists'}${size}`,
      ...(warnings.length > 0 ? { warning: warnings.join('; ') } : {}),
    };
  } finally {
    lambda.client.destroy();
  }
}
