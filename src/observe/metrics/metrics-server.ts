import type { AddressInfo } from 'node:net';
import { cannotListen, type ListenAddress } from '../../network/listen-address.ts';
import { METRICS_TYPE, type Metric, metricsText } from './text-format.ts';

interface MetricsServer {
  /** Of the metrics themselves. */
  url: string;
  close(): Promise<void>;
}

interface MetricsServerOptions {
  listen: ListenAddress;
  read(): Promise<Metric[]>;
}

const HEADERS_MS = 10_000;
const LOOPBACK = /^(127\.|::1$|localhost$)/;
/** A page in a browser can send requests to this machine under any name, but not under these. */
const LOCAL_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

/** `/metrics` of a process that has no API: one run, or a worker. */
export async function openMetricsServer({ listen, read }: MetricsServerOptions): Promise<MetricsServer> {
  // Loaded only where it is asked for: with it, Node loads its own undici, a tenth of a second of every run.
  const { createServer } = await import('node:http');
  const isLocal = LOOPBACK.test(listen.host);
  const server = createServer({ headersTimeout: HEADERS_MS }, (request, response) => {
    const isMeant = !isLocal || LOCAL_HOST.test(request.headers.host ?? '');
    if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics' || !isMeant) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('metrics are at /metrics\n');
      return;
    }
    read().then(
      (metrics) => response.writeHead(200, { 'content-type': METRICS_TYPE }).end(metricsText(metrics)),
      () => response.writeHead(503).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(cannotListen(listen, error)));
    server.listen(listen.port, listen.host, resolve);
  });
  // Numbers are no reason for a process to stay.
  server.unref();
  const { address, family, port } = server.address() as AddressInfo;
  const shown = family === 'IPv6' ? `[${address}]` : address;
  return {
    url: `http://${shown}:${port}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
