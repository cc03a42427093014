import { resolve } from 'node:path';
import { folderOf } from '../../app/open-blobs.ts';
import type { Context } from '../context.ts';
import { type Check, runCheck } from './check.ts';

/** Each place where batches go, by going there. */
export async function checkDispatch(context: Context): Promise<Check[]> {
  const { settings } = context;
  const checks: Check[] = [];
  const blobs = settings.blobs ?? resolve(settings.dir);
  for (const target of settings.dispatch ?? []) {
    if (target.kind === 'bullmq') {
      const { checkRedis } = await import('./check-redis.ts');
      checks.push(
        await runCheck('redis', (signal) => checkRedis(target.url, settings.fleetKeys ?? [], signal)),
      );
    } else if (target.kind === 'lambda') {
      const { checkLambda } = await import('./check-lambda.ts');
      const { browserFunction = null } = settings.lambda ?? {};
      const names = [target.name, ...(browserFunction === null ? [] : [browserFunction])];
      for (const name of new Set(names))
        checks.push(
          await runCheck('lambda', () => checkLambda(name, settings.lambda, blobs, settings.fleetKeys ?? [])),
        );
    }
  }
  const isElsewhere = (settings.dispatch ?? []).some(({ kind }) => kind !== 'threads');
  if (isElsewhere && folderOf(blobs) !== null)
    checks.push(
      await runCheck('sharing', () => ({
        detail: `pages are stored in ${folderOf(blobs)}`,
        warning: 'mount this folder at the same path on every worker machine, or use s3://',
      })),
    );
  return checks;
}
