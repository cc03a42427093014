import { hash } from 'node:crypto';
import type { Outcome } from '../../core/batch/outcome.ts';
import { extensionOf, mediaKey } from '../../core/media/media-file.ts';
import type { ShotRef } from '../../core/model.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { FetchResult, Shot } from '../../ports/fetcher.ts';

/** HTML of a page that failed in a browser, for people. */
const SNAPSHOT_BYTES_MAX = 4 * 1024 * 1024;

/** Pictures of pages: each is a blob named by its hash, stored before the outcome that names it. */

export type Snapshot = NonNullable<Extract<FetchResult, { kind: 'failure' }>['snapshot']>;

/** A picture under the name that it will be stored by. */
export interface NamedShot {
  ref: ShotRef;
  bytes: Buffer;
}

export function nameShots(shots: readonly Shot[], kind?: 'snapshot'): NamedShot[] {
  return shots.map(({ bytes, type, kind: own }) => named(bytes, type, kind ?? own, extensionOf(bytes)));
}

function named(bytes: Buffer, type: string, kind: ShotRef['kind'], extension: string): NamedShot {
  const key = mediaKey(hash('sha256', bytes, 'hex'), extension);
  return { ref: { kind, key, type, bytes: bytes.length }, bytes };
}

/** Equal pictures are stored once, by whichever worker comes first. */
export async function storeShots(shots: readonly NamedShot[], blobs: Blobs): Promise<void> {
  for (const { ref, bytes } of shots) if (!(await blobs.has(ref.key))) await blobs.put(ref.key, bytes);
}

/** What a browser saw of a page that failed: as well as it could be captured, for people. */
export async function withSnapshot(
  outcome: Outcome,
  { html, screenshot }: Snapshot,
  context: { blobs: Blobs; onTrouble(what: string, error: unknown): void },
): Promise<Outcome> {
  if (outcome.kind !== 'failed' || outcome.trace === null) return outcome;
  // As plain text: opening a file must not run a stranger's scripts.
  const source = html.subarray(0, SNAPSHOT_BYTES_MAX);
  const shots = [
    ...(screenshot ? nameShots([screenshot], 'snapshot') : []),
    ...(source.length > 0 ? [named(source, 'text/plain', 'snapshot-html', 'txt')] : []),
  ];
  try {
    await storeShots(shots, context.blobs);
  } catch (error) {
    context.onTrouble('cannot store a snapshot', error);
    return { kind: 'deferred', taskId: outcome.taskId };
  }
  if (shots.length === 0) return outcome;
  return { ...outcome, trace: { ...outcome.trace, shots: shots.map(({ ref }) => ref) } };
}
