import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** What happens to one request on its way. */
export type Fault =
  | 'none'
  /** The connection breaks when half of the request has arrived; the server gets nothing. */
  | 'reset-request'
  /** The server does what it was asked, and the connection breaks before a byte of the reply. */
  | 'lose-reply'
  /** The connection breaks in the middle of the reply's body. */
  | 'cut-reply'
  | { delayMs: number }
  | { status: number; code: string };

export interface FaultProxy {
  endpoint: string;
  /** As `PUT /bucket/key?query`, with what became of each. */
  log: { request: string; fault: Fault }[];
  /** Asked for each request, with how many of the same came before it. */
  plan(choose: (request: string, earlier: number) => Fault): void;
  close(): Promise<void>;
}

/** Stands before an HTTP server and harms what passes, as planned. */
export async function startFaultProxy(target: { port: number }): Promise<FaultProxy> {
  const log: FaultProxy['log'] = [];
  let choose: (request: string, earlier: number) => Fault = () => 'none';

  const server = createServer((incoming, outgoing) => {
    const request = `${incoming.method} ${incoming.url}`;
    const fault = choose(request, log.filter((entry) => entry.request === request).length);
    log.push({ request, fault });
    // Whoever broke the connection, there is nobody left to tell.
    pass(incoming, outgoing, fault, target.port).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log,
    plan(next) {
      choose = next;
      log.length = 0;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  fault: Fault,
  port: number,
): Promise<void> {
  if (fault === 'reset-request') {
    const half = Number(incoming.headers['content-length'] ?? 0) / 2;
    let got = 0;
    for await (const piece of incoming) {
      got += piece.length;
      if (got >= half) break;
    }
    incoming.socket.resetAndDestroy();
    return;
  }
  const body = await buffer(incoming);
  if (typeof fault === 'object' && 'status' in fault) {
    const xml = `<?xml version="1.0"?><Error><Code>${fault.code}</Code><Message>as planned</Message></Error>`;
    outgoing.writeHead(fault.status, { 'content-type': 'application/xml' });
    outgoing.end(incoming.method === 'HEAD' ? undefined : xml);
    return;
  }
  if (typeof fault === 'object') await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
  const reply = await forward(incoming, body, port);
  const content = await buffer(reply);
  if (fault === 'lose-reply') {
    incoming.socket.resetAndDestroy();
    return;
  }
  outgoing.writeHead(reply.statusCode ?? 500, reply.headers);
  if (fault !== 'cut-reply') {
    outgoing.end(content);
    return;
  }
  outgoing.write(content.subarray(0, content.length / 2), () => incoming.socket.resetAndDestroy());
}

function forward(incoming: IncomingMessage, body: Buffer, port: number): Promise<IncomingMessage> {
  const { method, url, headers } = incoming;
  return new Promise((resolve, reject) => {
    const request = send({ host: '127.0.0.1', port, method, path: url, headers });
    request.on('response', resolve);
    request.on('error', reject);
    request.end(body);
  });
}
