import type { LambdaClient } from '@aws-sdk/client-lambda';
import { messageOf, SeineError } from '../../core/errors.ts';

/** The AWS SDK for Lambda, loaded when it is first used. */

export interface LambdaPlace {
  /** Something that speaks Lambda's API; null is AWS itself, or what the SDK's own variables and files say. */
  endpoint: string | null;
  region: string | null;
}

type LambdaSdk = typeof import('@aws-sdk/client-lambda');

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
  const sdk = await import('@aws-sdk/client-lambda');
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

/** Endpoint and region, for any client. */
export async function awsOptions(place: LambdaPlace): Promise<{ endpoint?: string; region: string }> {
  const endpoint = place.endpoint === null ? {} : { endpoint: checkEndpoint(place.endpoint) };
  return { ...endpoint, region: await regionOf(place) };
}

async function regionOf({ endpoint, region }: LambdaPlace): Promise<string> {
  if (region !== null) return region;
  const { LambdaClient } = await import('@aws-sdk/client-lambda');
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
