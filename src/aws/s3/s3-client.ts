import { messageOf, SeineError } from '../../core/errors.ts';
import type { S3Client, S3ClientConfig } from './s3-sdk.ts';

/** The AWS SDK, loaded when it is first used: it costs a fifth of a second and 20 MB. */

export interface S3Settings {
  /** Null is AWS itself, or what the SDK's own variables and files say. */
  endpoint: string | null;
  region: string | null;
  /** Bucket in the path instead of the host name. Null: yes with an endpoint of one's own, no with AWS. */
  pathStyle: boolean | null;
  /** Between the attempts of a request; there is a default. */
  waits?: S3Waits;
  /** Instead of those that the SDK finds in its environment. */
  credentials?: AwsCredentialsProvider;
}

/** With the time of its end where it has one. */
export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
  expiration?: Date;
}

export type AwsCredentialsProvider = () => Promise<AwsCredentials>;

/** Those that the SDK finds for this process, for parts of it that do not have its environment. */
export function openCredentials(): AwsCredentialsProvider {
  let client: Promise<S3Client> | null = null;
  return async () => {
    // The region is of no matter: nothing is sent.
    client ??= import('./s3-sdk.ts').then((sdk) => new sdk.S3Client({ region: REGION_OF_OTHERS }));
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = await (
      await client
    ).config.credentials();
    return {
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      ...(expiration === undefined ? {} : { expiration }),
    };
  };
}

export const AWS_ITSELF: S3Settings = { endpoint: null, region: null, pathStyle: null };

type S3Sdk = typeof import('./s3-sdk.ts');

export interface LoadedS3 {
  sdk: S3Sdk;
  client: S3Client;
}

const CONNECT_MS = 5_000;
/** Without a byte in either direction. S3 keeps a slow copy alive with spaces. */
const SILENCE_MS = 60_000;
/** Region for the signature of a self-hosted store when no setting names one; most ignore it. */
const REGION_OF_OTHERS = 'us-east-1';

export async function loadS3(settings: S3Settings): Promise<LoadedS3> {
  const sdk = await import('./s3-sdk.ts');
  const options = {
    ...(settings.endpoint ? { endpoint: checkEndpoint(settings.endpoint) } : {}),
    ...(settings.credentials ? { credentials: settings.credentials } : {}),
    forcePathStyle: settings.pathStyle ?? settings.endpoint !== null,
    maxAttempts: ATTEMPTS_MAX,
    retryStrategy: patience(Math.random, settings.waits),
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
    // The signature covers the SHA-256 of each body already, and stores differ in the checksums they know.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // Would open a connection for each request.
    expectContinueHeader: false,
  } as const;
  const region = settings.region ?? undefined;
  const client = new sdk.S3Client({ ...options, ...(region ? { region } : {}) });
  try {
    await client.config.region();
    return { sdk, client };
  } catch (error) {
    client.destroy();
    if (settings.endpoint) return { sdk, client: new sdk.S3Client({ ...options, region: REGION_OF_OTHERS }) };
    throw new SeineError(`no AWS region for S3: ${messageOf(error)}`, {
      hint: 'set SEINE_S3_REGION or AWS_REGION',
      cause: error,
    });
  }
}

function checkEndpoint(endpoint: string): string {
  const url = URL.parse(endpoint);
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return endpoint;
  throw new SeineError(`'${endpoint}' is not a valid S3 endpoint`, {
    hint: 'write SEINE_S3_ENDPOINT as https://host:port',
  });
}

/**
 * How often a request is sent again. The SDK's own way gives a client 35 retries in advance and then none until
 * requests succeed, so that during an outage of seconds most requests would fail at once; here each has its own.
 */

type Strategy = Extract<S3ClientConfig['retryStrategy'], { recordSuccess: unknown }>;
type Token = Awaited<ReturnType<Strategy['acquireInitialRetryToken']>>;

/** With the waits below: 6 to 11 s of refused connections, 11 to 21 s of "slow down". */
export const ATTEMPTS_MAX = 8;

/** Waits double from the first of them to the longest. */
interface S3Waits {
  firstMs: number;
  throttledMs: number;
  longestMs: number;
}

const S3_WAITS: S3Waits = { firstMs: 100, throttledMs: 400, longestMs: 5_000 };

export function patience(random: () => number = Math.random, waits: S3Waits = S3_WAITS): Strategy {
  return {
    acquireInitialRetryToken: async () => tokenOf(0, 0),
    async refreshRetryTokenForRetry(token, { errorType, retryAfterHint }) {
      const retries = token.getRetryCount();
      const passing = errorType === 'TRANSIENT' || errorType === 'THROTTLING';
      if (!passing || retries + 1 >= ATTEMPTS_MAX) throw new Error('no more attempts');
      const base = errorType === 'THROTTLING' ? waits.throttledMs : waits.firstMs;
      const longest = Math.min(waits.longestMs, base * 2 ** retries);
      const asked = retryAfterHint ? retryAfterHint.getTime() - Date.now() : 0;
      // Between half and all of it, so that those who failed together do not come back together.
      return tokenOf(retries + 1, Math.max(longest * (1 + random()) * 0.5, Math.min(asked, waits.longestMs)));
    },
    recordSuccess() {},
  };
}

function tokenOf(retries: number, delayMs: number): Token {
  return { getRetryCount: () => retries, getRetryDelay: () => delayMs };
}
