import type { Job } from 'bullmq';
import { type Report, WIRE_VERSION } from '../core/batch/batch.ts';
import type { JobCard } from '../dispatch/bullmq-wire.ts';

/** What became of a batch. */
export type Last = { kind: 'report'; report: Report } | { kind: 'lost'; reason: string; blameless: boolean };

/** For whoever looks at the queue; a Redis that has forgotten the job does not mind. Null: there was no batch. */
export async function finish(job: Job<JobCard>, last: Last | null, token: string): Promise<void> {
  try {
    if (last?.kind === 'report')
      await job.moveToCompleted({ outcomes: last.report.outcomes.length }, token, false);
    else await job.moveToFailed(new Error(last?.reason ?? 'the batch was cancelled'), token, false);
  } catch {
    // It is over all the same.
  }
}

export function wrongVersion(name: string, version: number): string {
  return `the worker ${name} uses version ${WIRE_VERSION} of the wire format, the coordinator version ${version}: install the same Seine version everywhere`;
}
