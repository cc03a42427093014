import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** A WebSocket server of few words: it sends short texts, and knows what it was sent. */

export interface SocketClient {
  path: string;
  send(text: string): void;
  sendBinary(bytes: Buffer): void;
  /** Says good-bye with a code. */
  end(code: number): void;
  /** Breaks the connection without a word. */
  break(): void;
  /** The first message that comes. */
  received: Promise<string>;
}

export interface WebSocketServer {
  url: string;
  paths: string[];
  close(): Promise<void>;
}

const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export async function startWebSocketServer(
  onClient: (client: SocketClient) => void,
): Promise<WebSocketServer> {
  const paths: string[] = [];
  const sockets = new Set<Duplex>();
  const server = createServer((_, response) => void response.writeHead(404).end());
  server.on('upgrade', (request, socket) => {
    sockets.add(socket.on('error', () => {}));
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}${MAGIC}`)
      .digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    const path = request.url ?? '';
    paths.push(path);
    onClient({
      path,
      send: (text) => void socket.write(frameOf(1, Buffer.from(text))),
      sendBinary: (bytes) => void socket.write(frameOf(2, bytes)),
      end: (code) => void socket.end(frameOf(8, Buffer.from([code >> 8, code & 255]))),
      break: () => socket.destroy(),
      received: new Promise((resolve) => socket.once('data', (bytes: Buffer) => resolve(textOf(bytes)))),
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function frameOf(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head =
    length < 126
      ? Buffer.from([0x80 | opcode, length])
      : Buffer.from([0x80 | opcode, 126, length >> 8, length & 255]);
  return Buffer.concat([head, payload]);
}

/** Of a masked frame under 126 bytes. */
function textOf(frame: Buffer): string {
  const mask = frame.subarray(2, 6);
  return Buffer.from(
    frame.subarray(6, 6 + (frame[1]! & 127)).map((byte, index) => byte ^ mask[index % 4]!),
  ).toString();
}
