import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';

/** An origin that answers with exact bytes, or does to its sockets whatever a test asks for. */

export interface RawRequest {
  path: string;
  /** Request line and headers, as received. */
  head: string;
  /** 1 for the first request on this connection. */
  nth: number;
}

export type RawHandler = (socket: net.Socket, request: RawRequest) => void;

export interface RawOrigin {
  url: string;
  port: number;
  requests: RawRequest[];
  /** Connections accepted so far, and open now. */
  accepted(): number;
  open(): number;
  /** The most that were open at once. */
  openMax(): number;
  close(): Promise<void>;
}

export interface RawOriginOptions {
  secure?: boolean;
  /** Runs when a connection is made, before any request; for origins that do not speak HTTP at all. */
  onConnection?: (socket: net.Socket) => void;
}

export async function openRawOrigin(
  handlers: Record<string, RawHandler>,
  options: RawOriginOptions = {},
): Promise<RawOrigin> {
  const sockets = new Set<net.Socket>();
  const requests: RawRequest[] = [];
  let accepted = 0;
  let openMax = 0;

  function serve(socket: net.Socket): void {
    let nth = 0;
    let text = '';
    socket.setNoDelay(true);
    socket.on('error', () => {});
    options.onConnection?.(socket);
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end);
        text = text.slice(end + 4);
        nth += 1;
        const request = { path: head.split(' ')[1] ?? '', head, nth };
        requests.push(request);
        const path = request.path.split('?')[0] ?? '';
        (handlers[path] ?? notFound)(socket, request);
      }
    });
  }

  const server = options.secure
    ? tls.createServer({ key: TEST_KEY, cert: TEST_CERT }, serve)
    : net.createServer(serve);
  server.on('tlsClientError', () => {});
  server.on('connection', (socket: net.Socket) => {
    accepted += 1;
    sockets.add(socket);
    openMax = Math.max(openMax, sockets.size);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `${options.secure ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    requests,
    accepted: () => accepted,
    open: () => sockets.size,
    openMax: () => openMax,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A whole response with its length. */
export function reply(status: string, headers: string[], body: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(body);
  const head = [`HTTP/1.1 ${status}`, ...headers, `Content-Length: ${bytes.length}`, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes]);
}

/** Sends bytes and leaves the connection open. */
export function sends(bytes: string | Buffer): RawHandler {
  return (socket) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
}

/** Sends bytes, then a FIN. */
export function sendsThenEnds(bytes: string | Buffer): RawHandler {
  return (socket) => void socket.end(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
}

/** Sends bytes and waits until they have left, then a RST. */
export function sendsThenResets(bytes: string | Buffer, afterMs = 50): RawHandler {
  // The pause lets the bytes be read first: a reset throws away what the peer has not read yet.
  return (socket) => void socket.write(bytes, () => setTimeout(() => socket.resetAndDestroy(), afterMs));
}

/** Sends a beginning, then one piece after another for as long as the peer stays. */
export function drips(start: string, piece: string, everyMs: number): RawHandler {
  return (socket) => {
    socket.write(start);
    const timer = setInterval(() => socket.write(piece), everyMs);
    socket.on('close', () => clearInterval(timer));
  };
}

function notFound(socket: net.Socket): void {
  socket.write(reply('404 Not Found', []));
}

/** For `site.test`, signed by itself; of no use anywhere else. Valid until 2126. */
export const TEST_CERT = `-----BEGIN CERTIFICATE-----
MIIBlDCCATugAwIBAgIUNIJhfA69UvsB+TyR9ZpX03NQHgkwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJc2l0ZS50ZXN0MCAXDTI2MTExNTIwMTczMVoYDzIxMjYxMDIy
MjAxNzMxWjAUMRIwEAYDVQQDDAlzaXRlLnRlc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATTh/8ZkWN28r3s/g123EoOZnmGVJzmi0RzRYoAYJUO/6flmM/n7gf9
2tkEruHGdqx6FvZEp+2qa+rKYEfgR7vgo2kwZzAdBgNVHQ4EFgQUL+viE+PoIBON
AWPsKv2lVmEylTAwHwYDVR0jBBgwFoAUL+viE+PoIBONAWPsKv2lVmEylTAwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglzaXRlLnRlc3QwCgYIKoZIzj0EAwID
RwAwRAIgDK9ZhjvaSU9uuSpIEQJNKj/vbDcX9TfdnqL1A1V1PFUCIA/mKGQGdKzh
4dfJH5Huw9fBUJpra3KBDJEVCEfH1zLt
-----END CERTIFICATE-----`;

export const TEST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgB6SMiR4Qxf/6ZJGo
RVAaNZHqNDui+nsT64uTz+uvgzyhRANCAATTh/8ZkWN28r3s/g123EoOZnmGVJzm
i0RzRYoAYJUO/6flmM/n7gf92tkEruHGdqx6FvZEp+2qa+rKYEfgR7vg
-----END PRIVATE KEY-----`;
