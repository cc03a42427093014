import type { S3Client } from '@aws-sdk/client-s3';
import { messageOf, SeineError } from '../core/errors.ts';
import { ATTEMPTS_MAX, patience, type S3Waits } from './s3-patience.ts';

/** The AWS SDK, loaded when it is first used: it costs a fifth of a second and 20 MB. */

export interface S3Settings {
  /** Null is AWS itself, or what the SDK's own variables and files say. */
  endpoint: string | null;
  region: string | null;
  /** Bucket in the path instead of the host name. Null: yes with an endpoint of one's own, no with AWS. */
  pathStyle: boolean | null;
  /** Between the attempts of a request; there is a default. */
  waits?: S3Waits;
}

export const AWS_ITSELF: S3Settings = { endpoint: null, region: null, pathStyle: null };

type S3Sdk = typeof import('@aws-sdk/client-s3');

export interface LoadedS3 {
  sdk: S3Sdk;
  client: S3Client;
}

const CONNECT_MS = 5_000;
/** Without a byte in either direction. S3 keeps a slow copy alive with spaces. */
const SILENCE_MS = 60_000;
/** What a store of one's own is signed for when nobody names a region; most do not look at it. */
const REGION_OF_OTHERS = 'us-east-1';

export async function loadS3(settings: S3Settings): Promise<LoadedS3> {
  const sdk = await import('@aws-sdk/client-s3');
  const options = {
    ...(settings.endpoint ? { endpoint: checkEndpoint(settings.endpoint) } : {}),
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
