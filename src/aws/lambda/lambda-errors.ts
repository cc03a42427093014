import { messageOf, SeineError } from '../../core/errors.ts';

/** What went wrong when Lambda or IAM was asked, as one sentence and what to do. */

interface Trouble {
  name: string;
  code?: string;
  message: string;
  $metadata?: { httpStatusCode?: number };
}

const CREDENTIALS =
  'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role';

const OF_EMULATOR = 'set SEINE_LAMBDA_CREDENTIALS to the file that `seine lambda local` prints';

/** Nothing of the request has arrived. */
const NOT_ARRIVED = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']);

/** Lambda has no room for one more now. */
export function isThrottled(error: unknown): boolean {
  const { name, $metadata } = error as Trouble;
  return name === 'TooManyRequestsException' || $metadata?.httpStatusCode === 429;
}

/** For certain: the function was not started. A reply that did not come leaves that open. */
export function hasNotRun(error: unknown): boolean {
  const { name, code, message, $metadata } = error as Trouble;
  const status = $metadata?.httpStatusCode;
  if (status !== undefined) return status >= 400 && status < 500;
  if (name === 'CredentialsProviderError' || name === 'TokenProviderError') return true;
  if (code !== undefined && NOT_ARRIVED.has(code)) return true;
  return name === 'TimeoutError' && /establish/.test(message);
}

export function isMissing(error: unknown): boolean {
  const { name, $metadata } = error as Trouble;
  return (
    name === 'ResourceNotFoundException' ||
    name === 'NoSuchEntityException' ||
    name === 'NoSuchEntity' ||
    $metadata?.httpStatusCode === 404
  );
}

export function isDenied(error: unknown): boolean {
  return (error as Trouble).$metadata?.httpStatusCode === 403;
}

export interface AwsTarget {
  /** What was asked for: `the function seine`. */
  what: string;
  /** Null for AWS itself. */
  endpoint: string | null;
}

export function explainLambda(error: unknown, target: AwsTarget): SeineError {
  if (error instanceof SeineError) return error;
  const [message, hint] = sentenceOf(error as Trouble, target);
  return new SeineError(message, { hint, cause: error });
}

function sentenceOf(error: Trouble, { what, endpoint }: AwsTarget): [message: string, hint: string] {
  const place = endpoint ?? 'AWS';
  const status = error.$metadata?.httpStatusCode;
  if (/InvalidSignature|UnrecognizedClient|InvalidClientTokenId|IncompleteSignature/.test(error.name))
    return [`${place} rejected the credentials`, endpoint ? OF_EMULATOR : CREDENTIALS];
  if (/^ExpiredToken/.test(error.name)) return ['the credentials have expired', 'log in again'];
  if (error.name === 'CredentialsProviderError' || error.name === 'TokenProviderError')
    return ['no AWS credentials', CREDENTIALS];
  if (isMissing(error))
    return [
      `${what} does not exist at ${place}`,
      'deploy it with `seine lambda deploy`, or correct the name or SEINE_LAMBDA_REGION',
    ];
  if (isDenied(error))
    return [`access to ${what} is denied`, `the credentials lack a permission: ${messageOf(error)}`];
  if (error.code !== undefined || error.name === 'TimeoutError')
    return [
      `cannot reach ${place}: ${error.code ?? 'no answer'}`,
      endpoint ? 'check SEINE_LAMBDA_ENDPOINT and the network' : 'check the network and SEINE_LAMBDA_REGION',
    ];
  return [
    `${what} cannot be used: ${status ?? ''} ${error.name}: ${messageOf(error)}`.replace(/\s+/g, ' '),
    'correct it, or try again later',
  ];
}
