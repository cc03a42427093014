import { messageOf, SeineError, UNREACHABLE_CODES } from '../../core/errors.ts';

/** What went wrong in S3, as one sentence and what to do, where an operator can do something. */

interface S3Target {
  bucket: string;
  /** Of a compatible store; null for AWS itself. */
  endpoint: string | null;
}

interface Trouble {
  name: string;
  code?: string;
  message: string;
  Region?: string;
  $metadata?: { httpStatusCode?: number };
}

const CREDENTIALS =
  'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role';
const PERMISSIONS =
  's3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on its objects and s3:ListBucket on the bucket are required';

export function explainS3(error: unknown, target: S3Target): unknown {
  if (error instanceof SeineError) return error;
  const sentence = sentenceOf(error as Trouble, target);
  return sentence ? new SeineError(sentence[0], { hint: sentence[1], cause: error }) : error;
}

function sentenceOf(error: Trouble, target: S3Target): [message: string, hint: string] | null {
  const { bucket } = target;
  const store = target.endpoint ?? 'S3';
  const named = target.endpoint === null ? 'S3' : `S3 at ${target.endpoint}`;
  switch (error.name) {
    case 'NoSuchBucket':
      return [
        `no bucket ${bucket} at ${store}`,
        'create it, or correct its name, the region (SEINE_S3_REGION) or the endpoint (SEINE_S3_ENDPOINT)',
      ];
    case 'InvalidBucketName':
      return [`${bucket} is not a valid bucket name`, 'correct the name'];
    case 'InvalidAccessKeyId':
    case 'SignatureDoesNotMatch':
    case 'InvalidToken':
    case 'InvalidClientTokenId':
      return [`${store} rejected the credentials`, CREDENTIALS];
    case 'ExpiredToken':
    case 'ExpiredTokenException':
      return ['the credentials for S3 have expired', 'log in again, then run `seine resume`'];
    case 'CredentialsProviderError':
    case 'TokenProviderError':
      return ['no credentials for S3', CREDENTIALS];
    case 'PermanentRedirect':
    case 'AuthorizationHeaderMalformed':
      return [
        `the bucket ${bucket} is in another region${error.Region ? `, ${error.Region}` : ''}`,
        'set SEINE_S3_REGION to the region of the bucket',
      ];
    case 'RequestTimeTooSkewed':
      return ['the clock of this machine differs too much from that of S3', 'set the clock'];
  }
  // The SDK calls a broken connection a timeout too, but leaves its code.
  if (error.code && UNREACHABLE_CODES.has(error.code))
    return [`cannot reach ${named}: ${error.code}`, unreachableHint(target)];
  if (error.name === 'TimeoutError') return [`${named} does not answer`, unreachableHint(target)];
  return byStatus(error, target, store);
}

/** The answer to HEAD has no body, so only the number is known; and stores differ in the names they use. */
function byStatus(error: Trouble, { bucket }: S3Target, store: string): [string, string] | null {
  const status = error.$metadata?.httpStatusCode;
  if (status === 401 || status === 403)
    return [`access to the bucket ${bucket} at ${store} is denied`, PERMISSIONS];
  if (status === 429 || (status !== undefined && status >= 500))
    return [
      `${store} keeps failing: ${status} ${messageOf(error)}`,
      'wait until it works again, then run `seine resume`',
    ];
  return null;
}

function unreachableHint({ endpoint }: S3Target): string {
  return endpoint ? 'check SEINE_S3_ENDPOINT and the network' : 'check the network and SEINE_S3_REGION';
}

/** Of a single object, not of its bucket. */
export function isAbsent(error: unknown): boolean {
  const { name, $metadata } = troubleOf(error);
  return (
    name === 'NoSuchKey' || name === 'NotFound' || ($metadata?.httpStatusCode === 404 && name === 'Unknown')
  );
}

/** Also said of an object that is not there, to whoever may not list the whole bucket. */
export function isForbidden(error: unknown): boolean {
  return troubleOf(error).$metadata?.httpStatusCode === 403;
}

/** The range begins at or behind the end of the object. */
export function isPastEnd(error: unknown): boolean {
  return troubleOf(error).$metadata?.httpStatusCode === 416;
}

/** The object is not the one that was asked for first. */
export function isChanged(error: unknown): boolean {
  return troubleOf(error).$metadata?.httpStatusCode === 412;
}

/** The reply did not come: what was asked for may have happened or not. */
export function isUncertain(error: unknown): boolean {
  const { name, code, $metadata } = troubleOf(error);
  const status = $metadata?.httpStatusCode ?? 0;
  return name === 'TimeoutError' || name === 'NoSuchUpload' || code !== undefined || status >= 500;
}

function troubleOf(error: unknown): Trouble {
  return (error instanceof SeineError ? (error.cause ?? error) : error) as Trouble;
}
