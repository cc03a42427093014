import { fingerprint } from '../../../core/url/fingerprint.ts';

type Run = <T>(text: string, ...values: unknown[]) => Promise<T[]>;

/** Where a URL is in the index, or would be. */
export interface Found {
  slot: number;
  /** Null: not a task of the job, and the slot is free. */
  id: number | null;
}

/** Fingerprints are by the host of the URL itself, whatever host its task is counted with. */
export function slotOf(url: string, seed: number): number {
  const start = url.indexOf('//') + 2;
  const end = url.indexOf('/', start);
  return fingerprint(url, url.slice(start, end < 0 ? undefined : end), seed);
}

/** Looks URLs up, from given slots on: a slot that another URL has taken leads to the next one. */
export async function findTasks(
  run: Run,
  jobId: number,
  wanted: ReadonlyMap<string, number>,
): Promise<Map<string, Found>> {
  const found = new Map<string, Found>();
  let open = new Map(wanted);
  while (open.size > 0) {
    const slots = [...new Set(open.values())];
    const rows = await run<SeenRow>(FIND_SEEN, slots);
    const bySlot = new Map(rows.map((row) => [row.slot, row]));
    const next = new Map<string, number>();
    for (const [url, slot] of open) {
      const row = bySlot.get(slot);
      if (!row) found.set(url, { slot, id: null });
      else if (row.url === url && row.job_id === jobId) found.set(url, { slot, id: row.id });
      else next.set(url, slot + 1);
    }
    open = next;
  }
  return found;
}

export async function findTask(run: Run, jobId: number, seed: number, url: string): Promise<number | null> {
  return (await findTasks(run, jobId, new Map([[url, slotOf(url, seed)]]))).get(url)?.id ?? null;
}

interface SeenRow {
  slot: number;
  id: number;
  job_id: number;
  url: string;
}

const FIND_SEEN = `
  SELECT seen.fingerprint AS slot, task.* FROM seen CROSS JOIN LATERAL (
    SELECT id, job_id, url FROM tasks WHERE tasks.id = seen.task_id OFFSET 0
  ) AS task WHERE seen.fingerprint = ANY($1::bigint[])`;
