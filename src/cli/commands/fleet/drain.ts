import { type ExitName, SeineError } from '../../../core/errors.ts';
import { type Fleet, openFleet } from '../../../transport/bullmq/fleet.ts';
import { formatAmount } from '../../../tui/format.ts';
import { type Context, print, printable, printJson } from '../../context.ts';
import { queueUrl } from './worker.ts';

const LOOK_MS = 1_000;

/** Asks a worker to take no more batches. */
export async function drainCommand(context: Context): Promise<ExitName> {
  const [worker] = context.parsed.args;
  if (worker === undefined)
    throw new SeineError('no worker given', { hint: 'name one that `seine workers` shows' });
  const { fleetKeys = [], logger } = context.settings;
  const fleet = await openFleet({ url: queueUrl(context), fleetKeys, logger });
  try {
    const found = await fleet.drain(worker);
    if (!found)
      throw new SeineError(`no live worker ${printable(worker)} at Redis ${fleet.place}`, {
        hint: '`seine workers` shows those that are alive',
      });
    const isWaiting = context.parsed.values.wait === 'true';
    if (!context.json)
      print(
        context.stdout,
        `${printable(worker)} finishes ${formatAmount(found.batches, 'batch', 'batches')} and takes no more\n`,
      );
    if (isWaiting) await untilGone(fleet, worker);
    if (context.json) printJson(context, { worker, batches: found.batches, ended: isWaiting });
    else if (isWaiting) print(context.stdout, `${printable(worker)} has ended\n`);
    return 'success';
  } finally {
    fleet.close();
  }
}

async function untilGone(fleet: Fleet, worker: string): Promise<void> {
  while ((await fleet.workers()).heartbeats.some((heartbeat) => heartbeat.worker === worker))
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
}
