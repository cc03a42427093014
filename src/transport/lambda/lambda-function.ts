import type { LambdaPlace, LoadedLambda } from '../../aws/lambda/lambda-client.ts';
import { explainLambda, isDenied, isThrottled } from '../../aws/lambda/lambda-errors.ts';
import { WIRE_VERSION } from '../../core/batch/batch.ts';
import { SeineError } from '../../core/errors.ts';
import type { FunctionSize } from './lambda-cost.ts';
import type { LambdaAnswer, LambdaEvent, LambdaStatus } from './wire.ts';

/** A function as it is deployed. */
export interface LambdaFunction extends FunctionSize {
  name: string;
  timeoutMs: number;
  /** A zip holds no browser; a container image may. */
  isImage: boolean;
}

/** What is assumed of a function that may be invoked but not looked at. */
const UNSEEN = { memoryMb: 1_024, storageMb: 512, architecture: 'x86_64', timeoutMs: 900_000 } as const;

/** Null when the credentials allow no look: they may still allow to invoke it. */
export async function describeFunction(
  { sdk, client }: LoadedLambda,
  name: string,
  place: LambdaPlace,
): Promise<LambdaFunction | null> {
  try {
    const found = await client.send(new sdk.GetFunctionConfigurationCommand({ FunctionName: name }));
    return {
      name,
      timeoutMs: (found.Timeout ?? 3) * 1_000,
      memoryMb: found.MemorySize ?? 128,
      storageMb: found.EphemeralStorage?.Size ?? 512,
      architecture: found.Architectures?.[0] === 'arm64' ? 'arm64' : 'x86_64',
      isImage: found.PackageType === 'Image',
    };
  } catch (error) {
    if (isDenied(error)) return null;
    throw explainLambda(error, { what: `the function ${name}`, endpoint: place.endpoint });
  }
}

export function unseenFunction(name: string): LambdaFunction {
  return { name, ...UNSEEN, isImage: false };
}

interface FunctionStatus extends LambdaStatus {
  /** What its clock lacks to be ours, at most wrong by `errorMs`. */
  clockOffsetMs: number;
  errorMs: number;
}

/** Has the function say what it is. Null when there is no room for a call now. */
export async function askFunctionStatus(
  { sdk, client }: LoadedLambda,
  name: string,
  place: LambdaPlace,
  options: { waitMs?: number } = {},
): Promise<FunctionStatus | null> {
  const event: LambdaEvent = { kind: 'warm', waitMs: options.waitMs ?? 0 };
  const sentAt = performance.now();
  const call = new sdk.InvokeCommand({ FunctionName: name, Payload: Buffer.from(JSON.stringify(event)) });
  const reply = await client.send(call).catch((error: unknown) => {
    if (isThrottled(error)) return null;
    throw explainLambda(error, { what: `the function ${name}`, endpoint: place.endpoint });
  });
  if (reply === null) return null;
  const waitedMs = performance.now() - sentAt;
  const text = Buffer.from(reply.Payload ?? []).toString('utf8');
  if (reply.FunctionError)
    throw new SeineError(`the function ${name} fails: ${functionErrorOf(text)}`, {
      hint: 'see its log, or deploy it again with `seine lambda deploy`',
    });
  const here = parseStatus(text);
  if (here === null || here.wire !== WIRE_VERSION)
    throw new SeineError(
      `the function ${name} is ${here ? `another version of Seine, ${here.seine}` : 'not a Seine worker'}`,
      {
        hint: 'deploy it from this installation: `seine lambda deploy`',
      },
    );
  const middle = performance.timeOrigin + sentAt + waitedMs / 2;
  const errorMs = (waitedMs - (here.endedAt - here.startedAt)) / 2;
  return { ...here, clockOffsetMs: middle - (here.startedAt + here.endedAt) / 2, errorMs };
}

/** Each side must accept what the other signs. */
export function checkFleetKey(name: string, theirs: readonly string[], ours: readonly string[]): void {
  const accepts = (all: readonly string[], [first]: readonly string[]) =>
    first === undefined ? all.length === 0 : all.includes(first);
  if (accepts(theirs, ours) && accepts(ours, theirs)) return;
  const what = theirs.length === 0 ? 'no fleet key' : 'another fleet key';
  throw new SeineError(
    `the function ${name} has ${ours.length === 0 ? 'a fleet key, and this run has none' : what}`,
    {
      hint: 'set SEINE_FLEET_KEY here, and deploy the function again: `seine lambda deploy`',
    },
  );
}

function parseStatus(text: string): LambdaStatus | null {
  try {
    const answer: LambdaAnswer | null = JSON.parse(text);
    return answer?.kind === 'here' ? answer.here : null;
  } catch {
    return null;
  }
}

const ERROR_TEXT_MAX = 300;

/** One line of what Lambda says about a function that failed. */
export function functionErrorOf(payload: string): string {
  let said: { errorType?: unknown; errorMessage?: unknown } | null = null;
  try {
    said = JSON.parse(payload);
  } catch {
    // Then nothing is known.
  }
  const parts = [said?.errorType, said?.errorMessage].filter(
    (part) => typeof part === 'string' && part !== '',
  );
  const text = parts.join(': ').replace(/\s+/g, ' ');
  return text === '' ? 'no reason given' : text.slice(0, ERROR_TEXT_MAX);
}

/** The code itself cannot be loaded: no batch has begun, and none will. */
export function isBrokenCode(payload: string): boolean {
  return /"errorType":\s?"Runtime\.(ImportModuleError|HandlerNotFound|UserCodeSyntaxError|MalformedHandlerName|InvalidEntrypoint)"/.test(
    payload,
  );
}
