import { setTimeout as sleep } from 'node:timers/promises';
import { type AwsTarget, explainLambda, isMissing } from '../../aws/lambda/lambda-errors.ts';

/** How AWS is asked while deploying. */

/** IAM tells Lambda of a new role within seconds, and Lambda needs some after each change. */
export const PATIENCE_MS = 120_000;
export const LOOK_MS = 250;

export async function ask<T>(work: () => Promise<T>, target: AwsTarget): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw explainLambda(error, target);
  }
}

/** Null for what is not there. */
export function askOrNull<T>(work: () => Promise<T>, target: AwsTarget): Promise<T | null> {
  const orNull = (error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  };
  return ask(() => work().catch(orNull), target);
}

/** Another change is still under way. */
export function isBusy(error: unknown): boolean {
  return (error as Error).name === 'ResourceConflictException';
}

/** Asks again for a while, as long as what is wrong may pass. */
export async function patiently<T>(work: () => Promise<T>, mayPass: (error: unknown) => boolean): Promise<T> {
  for (const until = performance.now() + PATIENCE_MS; ; await sleep(LOOK_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!mayPass(error) || performance.now() > until) throw error;
    }
  }
}

/** IAM gives documents as text in a URL. */
export function documentOf(text: string | undefined): unknown {
  try {
    return JSON.parse(decodeURIComponent(text ?? ''));
  } catch {
    return null;
  }
}
