import type { Clock } from '../../src/ports/ambient.ts';

/** Real time, as workers use it. */
export const realClock: Clock = { now: () => performance.timeOrigin + performance.now() };
