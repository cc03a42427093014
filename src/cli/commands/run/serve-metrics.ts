import { openMetricsServer } from '../../../observe/metrics/metrics-server.ts';
import { processMetrics } from '../../../observe/metrics/process-metrics.ts';
import type { Metric } from '../../../observe/metrics/text-format.ts';
import { type Context, print } from '../../context.ts';
import { toListenAddress } from '../../listen-address.ts';

/** Serves the metrics of this process while `work` goes on, where `--metrics` asks for it. */
export async function withMetrics<T>(
  context: Context,
  read: () => Promise<Metric[]>,
  work: () => Promise<T>,
): Promise<T> {
  const { metrics } = context.parsed.values;
  if (metrics === undefined) return work();
  const server = await openMetricsServer({
    listen: toListenAddress(metrics, '--metrics'),
    read: async () => [...(await read()), ...processMetrics()],
  });
  print(context.stderr, `metrics at ${server.url}\n`);
  try {
    return await work();
  } finally {
    await server.close();
  }
}
