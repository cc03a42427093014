import type { Clock } from '../../ports/ambient.ts';

/** Epoch time that never runs backwards: the wall clock at the start, then the monotonic one. */
export const systemClock: Clock = { now: () => performance.timeOrigin + performance.now() };
