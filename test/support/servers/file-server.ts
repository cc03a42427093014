import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A web server of files with ranges, that can be told to misbehave. */
export interface FileServer {
  url(name: string): string;
  files: Map<string, Buffer>;
  /** What was asked for, oldest first. */
  requests: { path: string; range: string | null }[];
  bytesSent(): number;
  /** Answers the next requests instead of the file; true when it has answered. */
  intercept:
    | ((request: IncomingMessage, response: ServerResponse, file: Buffer | undefined) => boolean)
    | null;
  ranges: boolean;
  etag: string | null;
  close(): Promise<void>;
}

export async function startFileServer(): Promise<FileServer> {
  let sent = 0;
  const server = createServer((request, response) => {
    const path = decodeURI(request.url!.split('?')[0]!).slice(1);
    const range = request.headers.range ?? null;
    site.requests.push({ path, range });
    const file = site.files.get(path);
    if (site.intercept?.(request, response, file)) return;
    if (!file) response.writeHead(404).end();
    else answer(response, file, site.ranges ? range : null);
  });

  function answer(response: ServerResponse, file: Buffer, range: string | null): void {
    const headers = site.etag === null ? {} : { etag: site.etag };
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
    const start = Number(from ?? 0);
    const end = Math.min(file.length, to ? Number(to) + 1 : file.length);
    if (from !== undefined && start >= file.length) {
      response.writeHead(416, { 'content-range': `bytes */${file.length}` }).end();
      return;
    }
    const body = file.subarray(start, end);
    sent += body.length;
    response.writeHead(from === undefined ? 200 : 206, {
      ...headers,
      'content-length': body.length,
      ...(from === undefined ? {} : { 'content-range': `bytes ${start}-${end - 1}/${file.length}` }),
    });
    response.end(body);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const site: FileServer = {
    url: (name) => `http://127.0.0.1:${port}/${name}`,
    files: new Map(),
    requests: [],
    bytesSent: () => sent,
    intercept: null,
    ranges: true,
    etag: '"1"',
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return site;
}
