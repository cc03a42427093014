import type { Scope } from '../../../core/keys/api-key.ts';
import type { Job } from '../../../ports/store.ts';
import type { ApiContext, Caller } from './access.ts';
import { type Format, formatsOf } from './options.ts';
import { Problem } from './problems.ts';

export function isAdmin({ scopes }: Caller): boolean {
  return scopes.has('admin');
}

export function requireScope({ scopes }: Caller, scope: Scope): void {
  if (!scopes.has(scope)) throw new Problem('forbidden', `this needs a key with ${scope} scope`);
}

/** The job of an id, as `job_7`, `scrape_7_1_1` or by name. A key sees only its own jobs; one with admin scope all. */
export async function jobOf(
  { reads }: Pick<ApiContext, 'reads'>,
  id: string,
  caller: Caller,
): Promise<{ job: Job; taskId: number | null; formats: Format[] }> {
  const [, number, task, asked] = /^(?:job|scrape)_(\d{1,15})(?:_(\d{1,15})_(\d{1,3}))?$/.exec(id) ?? [];
  const job = number === undefined ? await reads.jobs.find(id) : await reads.jobs.byId(Number(number));
  if (!job || !(isAdmin(caller) || job.owner === caller.keyId)) throw new Problem('not-found', 'no such job');
  return { job, taskId: task === undefined ? null : Number(task), formats: formatsOf(Number(asked ?? 0)) };
}

/** Without what is undefined. */
export function definedOf<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
