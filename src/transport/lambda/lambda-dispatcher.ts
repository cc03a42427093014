import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type LambdaPlace, type LoadedLambda, loadLambda } from '../../aws/lambda/lambda-client.ts';
import type { Prices } from '../../core/cost/cost.ts';
import { SeineError } from '../../core/errors.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { Dispatcher } from '../../ports/dispatcher.ts';
import { openMessageSeal } from '../message-seal.ts';
import { LambdaCalls } from './lambda-calls.ts';
import {
  askFunctionStatus,
  checkFleetKey,
  describeFunction,
  type LambdaFunction,
  unseenFunction,
} from './lambda-function.ts';

export interface LambdaDispatcherOptions {
  /** Name or ARN of the function, or of an alias or version of it. */
  name: string;
  /** Something that speaks Lambda's API, instead of AWS itself. */
  endpoint?: string | null;
  region?: string | null;
  /** A file with an access key; what the SDK finds by itself when absent. */
  credentials?: string | null;
  /** Sign what is sent, if there are any: the first is used, all are accepted. */
  fleetKeys?: readonly string[];
  /** Most invocations at once. */
  concurrency?: number;
  /** Function for batches that need a browser; null sends those to the same one. */
  browserFunction?: string | null;
  /** Where the function must keep its pages, too. */
  blobs: { place: string; open(): Promise<Blobs> };
  logger: Logger;
  /** For what it says it has spent; the default ones when absent. */
  prices?: Prices | undefined;
}

const CONCURRENCY = 100;
/** Clocks that differ by less are as good as equal: correcting them would bring the error of the measurement in. */
const CLOCK_TOLERANCE_MS = 1_000;

/** What a function must agree with. */
interface CheckedRun {
  lambda: LoadedLambda;
  place: LambdaPlace;
  blobs: string;
  keyIds: readonly string[];
  logger: Logger;
}

interface Checked {
  clockOffsetMs: number;
  hasBrowser: boolean;
}

/**
 * Each batch is one synchronous invocation, sent once (lambda-calls.ts): the batch is the payload, the report the answer,
 * and parts that the answer has no room for go by the blobs (wire.ts). concurrency-limit.ts says how many invocations run
 * at once. To drain, an object is put into the blobs that the functions watch for (watch-drain.ts).
 */
export async function openLambdaDispatcher(options: LambdaDispatcherOptions): Promise<Dispatcher> {
  const {
    name,
    endpoint = null,
    region = null,
    credentials = null,
    browserFunction = null,
    logger,
  } = options;
  const place: LambdaPlace = { endpoint, region, credentials };
  const concurrency = options.concurrency ?? CONCURRENCY;
  const seal = openMessageSeal(options.fleetKeys ?? []);
  const lambda = await loadLambda(place, { sockets: concurrency + 1 });
  const describe = async (wanted: string): Promise<LambdaFunction> => {
    const found = await describeFunction(lambda, wanted, place);
    if (!found)
      logger.warn(`no permission to read the configuration of the function ${wanted}: costs are estimates`);
    return found ?? unseenFunction(wanted);
  };
  try {
    const http = await describe(name);
    const browser =
      browserFunction === null || browserFunction === name ? http : await describe(browserFunction);
    const run = { lambda, place, blobs: options.blobs.place, keyIds: seal.keyIds, logger };
    const first = await check(http, run);
    const { hasBrowser } = browser === http ? first : await check(browser, run);
    return new LambdaCalls({
      lambda,
      http,
      browser,
      hasBrowser,
      concurrency,
      clockOffsetMs: first.clockOffsetMs,
      drainKey: `drain/${randomBytes(8).toString('hex')}`,
      seal,
      openBlobs: options.blobs.open,
      prices: options.prices,
      logger,
    });
  } catch (error) {
    lambda.client.destroy();
    throw error;
  }
}

/** Returns what its clock lacks to be ours, and whether it has a browser, as far as it could be asked. */
async function check({ name: wanted, isImage }: LambdaFunction, run: CheckedRun): Promise<Checked> {
  const { lambda, place, blobs, keyIds, logger } = run;
  let here = await askFunctionStatus(lambda, wanted, place);
  if (here && !isSamePlace(here.blobs, blobs))
    throw new SeineError(
      here.blobs === null
        ? `the function ${wanted} has no --blobs setting`
        : `the function ${wanted} stores pages in ${here.blobs}, but this run stores them in ${blobs}`,
      {
        hint: 'use the same location for both: `seine lambda deploy --blobs s3://bucket/prefix`, and --blobs or SEINE_BLOBS here',
      },
    );
  if (here) checkFleetKey(wanted, here.keyIds ?? [], keyIds);
  // The first call may have waited for a cold start: the second tells the time.
  if (here && Math.abs(here.clockOffsetMs) > CLOCK_TOLERANCE_MS)
    here = await askFunctionStatus(lambda, wanted, place);
  const hasBrowser = here?.browser ?? isImage;
  if (!here || Math.abs(here.clockOffsetMs) <= CLOCK_TOLERANCE_MS) return { clockOffsetMs: 0, hasBrowser };
  logger.warn(
    `the clock of this machine differs from Lambda's by ${(here.clockOffsetMs / 1_000).toFixed(1)} s: correct it`,
  );
  return { clockOffsetMs: here.clockOffsetMs, hasBrowser };
}

/** Both as the setting `blobs` says them. */
function isSamePlace(theirs: string | null, ours: string): boolean {
  return theirs !== null && canonical(theirs) === canonical(ours);
}

function canonical(place: string): string {
  if (/^s3:/i.test(place)) return place.replace(/\/+$/, '');
  return resolve(place.startsWith('file:') ? fileURLToPath(place) : place);
}
