import { SeineError } from '../../core/errors.ts';
import type { Logger } from '../../ports/ambient.ts';
import { type MessageSeal, openMessageSeal } from '../message-seal.ts';
import type { FleetPlace } from './redis.ts';

const MAKE_ONE =
  'make one with `seine fleet-key create fleet.key`, and give coordinators and workers SEINE_FLEET_KEY_FILE=fleet.key';

/** Without a key a fleet works on one machine only: elsewhere, whoever reaches Redis could send batches and reports. */
export function openFleetSeal(
  place: FleetPlace,
  keys: readonly string[],
  logger: Pick<Logger, 'warn'>,
): MessageSeal {
  if (keys.length === 0 && !isLoopback(place))
    throw new SeineError(`no fleet key for Redis at ${place.shown}`, { hint: MAKE_ONE });
  if (keys.length === 0)
    logger.warn(
      `no fleet key: batches and reports at Redis ${place.shown} are neither signed nor encrypted; ${MAKE_ONE}`,
    );
  return openMessageSeal(keys);
}

function isLoopback({ url }: FleetPlace): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/i.test(new URL(url).hostname);
}

const PAUSE_MS = 10_000;

/** Tells of messages that were refused, but not of each: whoever can write to Redis can write many. */
export class RefusalLog {
  readonly #logger: Pick<Logger, 'warn'>;
  #toldAt = Number.NEGATIVE_INFINITY;
  #untold = 0;

  constructor(logger: Pick<Logger, 'warn'>) {
    this.#logger = logger;
  }

  note(what: string, now: number): void {
    if (now - this.#toldAt < PAUSE_MS) {
      this.#untold++;
      return;
    }
    const more = this.#untold === 0 ? '' : ` (and ${this.#untold} more since the last warning)`;
    this.#logger.warn(`${what}${more}`);
    this.#toldAt = now;
    this.#untold = 0;
  }
}
