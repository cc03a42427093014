import type { Blobs } from '../../ports/blobs.ts';

/**
 * Nothing can be sent to a call that is under way, so it looks itself whether it is to end early: seldom, since each
 * look is paid for, and less often the longer it takes. Ten looks in ten seconds are 2 % of what a gigabyte costs.
 */
const FIRST_LOOK_MS = 700;
const LOOK_SHARE = 0.25;
/** A coordinator that is asked to end waits ten seconds. */
const LOOK_MS_MAX = 3_000;

interface DrainWatch {
  signal: AbortSignal;
  close(): void;
}

export function watchDrain(blobs: Pick<Blobs, 'has'>, key: string): DrainWatch {
  const controller = new AbortController();
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const look = async (): Promise<void> => {
    try {
      if (await blobs.has(key)) controller.abort();
    } catch {
      // Then the batch takes the time that it has.
    }
    plan();
  };
  const plan = () => {
    if (closed || controller.signal.aborted) return;
    const share = (performance.now() - startedAt) * LOOK_SHARE;
    const ms = Math.min(Math.max(FIRST_LOOK_MS, share), LOOK_MS_MAX);
    timer = setTimeout(() => void look(), ms);
  };
  plan();
  return {
    signal: controller.signal,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}
