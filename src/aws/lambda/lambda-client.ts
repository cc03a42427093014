import { readFile } from 'node:fs/promises';
import { messageOf, SeineError } from '../../core/errors.ts';
import type { LambdaClient } from './lambda-sdk.ts';

/** The AWS SDK for Lambda, loaded when it is first used. */

export interface LambdaPlace {
  /** Something that speaks Lambda's API; null is AWS itself, or what the SDK's own variables and files say. */
  endpoint: string | null;
  region: string | null;
  /** A file with an access key in AWS's format; what the SDK finds by itself when absent. */
  credentials?: string | null;
}

type LambdaSdk = typeof import('./lambda-sdk.ts');

export interface LoadedLambda {
  sdk: LambdaSdk;
  client: LambdaClient;
}

const CONNECT_MS = 5_000;
/** A connection that rests longer may have been closed at the other end: what is sent on it would be lost. */
const REST_MS = 15_000;
/** Region for the signature of a foreign endpoint when no setting names one. */
const REGION_OF_OTHERS = 'us-east-1';

/** `sockets`: requests at once; each invocation holds a connection until it is answered. */
export async function loadLambda(
  place: LambdaPlace,
  { sockets }: { sockets: number },
): Promise<LoadedLambda> {
  const sdk = await import('./lambda-sdk.ts');
  const connections = { keepAlive: true, maxSockets: sockets, timeout: REST_MS };
  const client = new sdk.LambdaClient({
    ...(await awsOptions(place)),
    // An invocation that is sent again runs again: whether that is wanted, only the caller knows.
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: 0,
      httpAgent: connections,
      httpsAgent: connections,
    },
  });
  return { sdk, client };
}

interface AwsOptions {
  endpoint?: string;
  region: string;
  credentials?: { accessKeyId: string; secretAccessKey: string };
}

/** Endpoint, region and credentials, for any client. */
export async function awsOptions(place: LambdaPlace): Promise<AwsOptions> {
  const endpoint = place.endpoint === null ? {} : { endpoint: checkEndpoint(place.endpoint) };
  const credentials =
    place.credentials == null ? {} : { credentials: await readCredentials(place.credentials) };
  return { ...endpoint, ...credentials, region: await regionOf(place) };
}

/** The SDK's own reader serves all its clients at once: S3 has other keys than an emulator of Lambda. */
async function readCredentials(path: string): Promise<NonNullable<AwsOptions['credentials']>> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new SeineError(`cannot read the credentials for Lambda: ${messageOf(error)}`, {
      hint: 'set SEINE_LAMBDA_CREDENTIALS to the file that `seine lambda local` prints',
    });
  });
  const find = (name: string) => new RegExp(`^\\s*${name}\\s*=\\s*(\\S+)\\s*$`, 'm').exec(text)?.[1];
  const [accessKeyId, secretAccessKey] = [find('aws_access_key_id'), find('aws_secret_access_key')];
  if (accessKeyId && secretAccessKey) return { accessKeyId, secretAccessKey };
  throw new SeineError(`${path} has no aws_access_key_id and aws_secret_access_key`, {
    hint: 'set SEINE_LAMBDA_CREDENTIALS to a credentials file of AWS',
  });
}

async function regionOf({ endpoint, region }: LambdaPlace): Promise<string> {
  if (region !== null) return region;
  const { LambdaClient } = await import('./lambda-sdk.ts');
  const client = new LambdaClient({});
  try {
    return await client.config.region();
  } catch (error) {
    if (endpoint !== null) return REGION_OF_OTHERS;
    throw new SeineError(`no AWS region for Lambda: ${messageOf(error)}`, {
      hint: 'set SEINE_LAMBDA_REGION or AWS_REGION',
      cause: error,
    });
  } finally {
    client.destroy();
  }
}

function checkEndpoint(endpoint: string): string {
  const url = URL.parse(endpoint);
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return endpoint;
  throw new SeineError(`'${endpoint}' is not a valid Lambda endpoint`, {
    hint: 'write SEINE_LAMBDA_ENDPOINT as https://host:port',
  });
}
