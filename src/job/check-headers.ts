import { SeineError } from '../core/errors.ts';
import type { JobSpec } from '../core/job-schema/job.ts';

/** Names by which sites know who asks: Authorization, Cookie, X-Api-Key, X-Auth-Token and their kin. */
const CREDENTIAL =
  /^cookie2?$|(?:^|[-_])(?:auth|authorization|api[-_]?key|access[-_]?key|subscription[-_]?key|token|secret|password)(?:$|[-_])/i;

/** Headers of the job go to every host that it is led to, and are stored: credentials have no place among them. */
export function checkHeaders({ identity }: Pick<JobSpec, 'identity'>): void {
  const open = Object.keys(identity.headers).find((name) => CREDENTIAL.test(name));
  if (open !== undefined)
    throw new SeineError(`identity.headers: ${open} would be sent to every host of the job`, {
      hint: 'put it into `identity.secretHeaders`, under its origin',
    });
}
