import type { AdoptedBatch } from '../../../ports/store.ts';
import { type ReadyColumns, type SentColumns, toAdopted } from '../../shared/leased-rows.ts';
import { LEASED } from '../../shared/states.ts';
import type { Transaction } from '../connection/database.ts';
import { ALIVE } from './coordinator-heartbeats.ts';

/** Makes a batch of a coordinator that is gone one of this coordinator, with its hosts. One of several gets it. */
export async function adoptInTransaction(
  tx: Transaction,
  jobId: number,
  batchId: number,
  coordinator: number,
): Promise<AdoptedBatch | null> {
  const [batch] = await tx.run<Omit<SentColumns, 'task_ids'> & { coordinator: number }>(
    LOCK_SENT,
    batchId,
    jobId,
    coordinator,
  );
  if (!batch) return null;
  if (batch.coordinator !== coordinator) {
    await tx.run(TAKE_HOSTS, batchId, coordinator, batch.coordinator);
    await tx.run('UPDATE batches SET coordinator = $2 WHERE id = $1', batchId, coordinator);
  }
  const rows = await tx.run<ReadyColumns & { host_id: number }>(SELECT_HELD, batchId);
  return toAdopted(batchId, batch, rows);
}

const LOCK_SENT = `
  SELECT reply_to, permits, lease_until, coordinator FROM batches
  WHERE id = $1 AND job_id = $2 AND state = 'open' AND reply_to IS NOT NULL
    AND (coordinator = $3 OR NOT ${ALIVE('batches.coordinator')}) FOR UPDATE`;

/** Those that nobody else took meanwhile. */
const TAKE_HOSTS = `
  WITH locked AS MATERIALIZED (
    SELECT id FROM hosts
    WHERE id = ANY((SELECT host_ids FROM batches WHERE batches.id = $1)::bigint[])
      AND (holds = 0 OR holder = $2 OR holder = $3)
    ORDER BY id FOR UPDATE
  )
  UPDATE hosts SET holds = CASE WHEN holder = $2 THEN holds ELSE 0 END + 1, holder = $2
  WHERE id = ANY(ARRAY(SELECT id FROM locked))`;

const SELECT_HELD = `
  SELECT id, host_id, url, at_url, depth, route, attempts, hops, losses, throttles, meta, referrer FROM tasks
  WHERE id = ANY((SELECT task_ids FROM batches WHERE batches.id = $1)::bigint[]) AND state = ${LEASED} AND batch_id = $1
  ORDER BY id`;
