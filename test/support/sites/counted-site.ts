import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A site that knows what it was asked for and how many bytes it answered. It is also a proxy that leads to itself. */
export interface CountedSite {
  /** Without a slash at its end. */
  url: string;
  log: { path: string; status: number; bytes: number }[];
  /** Pages of `/held/` that wait for their answer. */
  waiting(): number;
  /** Answers them, and those to come. */
  release(): void;
  close(): Promise<void>;
}

/** `/missing` is not there, `/flaky` is unavailable once, `/private/` is closed to robots. */
export async function startCountedSite(): Promise<CountedSite> {
  const log: CountedSite['log'] = [];
  const held = new Set<() => void>();
  let isOpen = false;
  const answer = (reply: ServerResponse, path: string, status: number) => {
    const body =
      path === '/robots.txt' ? 'User-agent: *\nDisallow: /private/\n' : `<h1>${path}</h1>`.padEnd(500);
    log.push({ path, status, bytes: body.length });
    reply
      .writeHead(status, { 'content-type': path === '/robots.txt' ? 'text/plain' : 'text/html' })
      .end(body);
  };
  const server = createServer((request, reply) => {
    const path = new URL(request.url!, 'http://any.example').pathname;
    const isFirst = !log.some((one) => one.path === path);
    const status = path === '/missing' ? 404 : path === '/flaky' && isFirst ? 503 : 200;
    if (isOpen || !path.startsWith('/held/')) answer(reply, path, status);
    else held.add(() => answer(reply, path, status));
  });
  server.on('connect', (_, socket) => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    server.emit('connection', socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log,
    waiting: () => held.size,
    release() {
      isOpen = true;
      for (const one of held) one();
      held.clear();
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
