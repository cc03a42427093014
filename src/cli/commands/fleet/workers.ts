import type { ExitName } from '../../../core/errors.ts';
import { type Heartbeat, readHeartbeats } from '../../../transport/bullmq/heartbeat.ts';
import { openRedis, parseFleet } from '../../../transport/bullmq/redis.ts';
import { fleetKeys } from '../../../transport/bullmq/wire.ts';
import { openMessageSeal } from '../../../transport/message-seal.ts';
import { formatBytes, formatDuration } from '../../../tui/format.ts';
import { type Context, print, printable, printJson } from '../../context.ts';
import { queueUrl } from './worker.ts';

/** Shows the workers whose heartbeats are not older than seconds. */
export async function workersCommand(context: Context): Promise<ExitName> {
  const place = parseFleet(queueUrl(context));
  const redis = await openRedis(place, { logger: context.settings.logger });
  try {
    const seal = openMessageSeal(context.settings.fleetKeys ?? []);
    const { heartbeats, refused } = await readHeartbeats(redis.client, fleetKeys(place.prefix), seal);
    if (refused > 0) context.settings.logger.warn(`workers with another fleet key, or none: ${refused}`);
    heartbeats.sort((one, other) => one.worker.localeCompare(other.worker));
    if (context.json) for (const heartbeat of heartbeats) printJson(context, rowOf(heartbeat));
    else if (heartbeats.length === 0) print(context.stdout, `no live workers at Redis ${place.shown}\n`);
    else print(context.stdout, textOf(heartbeats, Date.now()));
    return 'success';
  } finally {
    redis.close();
  }
}

function rowOf({ worker, kind, threads, slots, cpu, memoryBytes, batches, hosts, at }: Heartbeat) {
  const seenAt = new Date(at).toISOString();
  return { worker, kind, threads, slots, cpu, memoryBytes, batches, hosts, seenAt };
}

function textOf(heartbeats: readonly Heartbeat[], now: number): string {
  const rows = heartbeats.map((heartbeat) => [
    heartbeat.worker,
    heartbeat.kind,
    String(heartbeat.threads),
    `${Math.round(heartbeat.cpu * 100)} %`,
    formatBytes(heartbeat.memoryBytes),
    String(heartbeat.batches),
    formatDuration(Math.max(0, now - heartbeat.at)),
    heartbeat.hosts.join(' '),
  ]);
  const lines = [['worker', 'kind', 'threads', 'cpu', 'memory', 'batches', 'seen', 'hosts'], ...rows];
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines
    .map((line) => printable(line.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')).trimEnd())
    .join('\n')
    .concat('\n');
}
