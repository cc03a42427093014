import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';

/** Real proxies on the loopback, each asking from an address of its own, so that an origin can tell them apart. */

export interface ProxyServerOptions {
  kind?: 'http' | 'https' | 'socks5';
  /** Where its own connections come from: 127.0.0.x. */
  from?: string;
  credentials?: { username: string; password: string };
  certificate?: { key: string; cert: string };
  /** Where names lead to; the names themselves when absent. */
  resolve?: (host: string) => string;
  /** Statuses for tunnels it does not make, by `host:port`. */
  refuses?: (authority: string) => number | null;
  /** Instead of being a proxy. */
  behaves?: 'silent' | 'closes' | 'babbles';
}

export interface ProxyServer {
  port: number;
  /** `host:port`, for each tunnel or whole URL that was asked for. */
  asked: string[];
  /** Request lines of whole URLs. */
  whole: string[];
  url(credentials?: string): string;
  close(): Promise<void>;
}

export async function startProxy(options: ProxyServerOptions = {}): Promise<ProxyServer> {
  const kind = options.kind ?? 'http';
  const sockets = new Set<net.Socket>();
  const log = { asked: [] as string[], whole: [] as string[] };
  const serve = (client: net.Socket) => {
    client.on('error', () => {});
    if (options.behaves === 'closes') client.destroy();
    else if (options.behaves === 'babbles') client.end('220 mail.test ESMTP\r\n');
    else if (options.behaves === 'silent') client.resume();
    else if (kind === 'socks5') serveSocks(client, options, log.asked);
    else serveHttp(client, options, log);
  };
  const server = kind === 'https' ? tls.createServer(options.certificate!, serve) : net.createServer(serve);
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  return {
    port,
    ...log,
    url: (credentials) => `${kind}://${credentials ? `${credentials}@` : ''}127.0.0.1:${port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A port at which nobody listens. */
export async function closedPort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function serveHttp(
  client: net.Socket,
  options: ProxyServerOptions,
  log: Pick<ProxyServer, 'asked' | 'whole'>,
) {
  let text = '';
  const onData = (bytes: Buffer) => {
    text += bytes.toString('latin1');
    const end = text.indexOf('\r\n\r\n');
    if (end < 0) return;
    const head = text.slice(0, end);
    const rest = text.slice(end + 4);
    client.off('data', onData);
    const [method, target = ''] = head.split(' ');
    const { credentials } = options;
    const wanted =
      credentials && Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
    if (wanted && !head.toLowerCase().includes(`proxy-authorization: basic ${wanted.toLowerCase()}`)) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const isTunnel = method === 'CONNECT';
    const url = isTunnel ? null : new URL(target);
    const authority = url ? `${url.hostname}:${url.port || 80}` : target;
    log.asked.push(authority);
    if (url) log.whole.push(target);
    const refused = isTunnel ? (options.refuses?.(authority) ?? null) : null;
    if (refused !== null) {
      client.end(`HTTP/1.1 ${refused} No\r\nContent-Length: 2\r\n\r\nno`);
      return;
    }
    connect(authority, options, (upstream) => {
      if (upstream === null) client.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n');
      else if (isTunnel) join(client, upstream, 'HTTP/1.1 200 Connection established\r\n\r\n', rest);
      else join(client, upstream, '', plainRequest(head, url!) + rest);
    });
  };
  client.on('data', onData);
}

/** The request as the origin gets it; of the next ones on the connection this proxy knows nothing, so it is closed. */
function plainRequest(head: string, url: URL): string {
  const lines = head.split('\r\n').filter((line) => !/^(proxy-authorization|connection):/i.test(line));
  lines[0] = `GET ${url.pathname}${url.search} HTTP/1.1`;
  return `${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`;
}

function serveSocks(client: net.Socket, options: ProxyServerOptions, asked: string[]): void {
  let bytes = Buffer.alloc(0);
  let stage: 'greeting' | 'password' | 'request' = 'greeting';
  const onData = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    if (stage === 'greeting' && bytes.length >= 2 && bytes.length >= 2 + bytes[1]!) {
      const offers = bytes.subarray(2, 2 + bytes[1]!);
      bytes = bytes.subarray(2 + bytes[1]!);
      const method = options.credentials ? 2 : 0;
      if (!offers.includes(method)) return void client.end(Buffer.from([5, 255]));
      client.write(Buffer.from([5, method]));
      stage = options.credentials ? 'password' : 'request';
    }
    if (stage === 'password' && bytes.length >= 2) {
      const username = bytes.subarray(2, 2 + bytes[1]!);
      const length = bytes[2 + bytes[1]!];
      if (length === undefined || bytes.length < 3 + username.length + length) return;
      const password = bytes.subarray(3 + username.length, 3 + username.length + length);
      bytes = bytes.subarray(3 + username.length + length);
      const fits =
        String(username) === options.credentials!.username &&
        String(password) === options.credentials!.password;
      client.write(Buffer.from([1, fits ? 0 : 1]));
      if (!fits) return void client.end();
      stage = 'request';
    }
    if (stage !== 'request' || bytes.length < 7) return;
    const { host, length } = socksHost(bytes);
    if (bytes.length < length + 2) return;
    const authority = `${host}:${bytes.readUInt16BE(length)}`;
    asked.push(authority);
    client.off('data', onData);
    const reply = (code: number) => Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
    const refused = options.refuses?.(authority) ?? null;
    if (refused !== null) return void client.end(reply(refused));
    connect(authority, options, (upstream) => {
      if (upstream === null) client.end(reply(5));
      else join(client, upstream, reply(0), '');
    });
  };
  client.on('data', onData);
}

function socksHost(bytes: Buffer): { host: string; length: number } {
  if (bytes[3] === 1) return { host: [...bytes.subarray(4, 8)].join('.'), length: 8 };
  if (bytes[3] === 4) return { host: `[${bytes.subarray(4, 20).toString('hex')}]`, length: 20 };
  const length = 5 + bytes[4]!;
  return { host: bytes.toString('latin1', 5, length), length };
}

function connect(
  authority: string,
  { from, resolve }: ProxyServerOptions,
  done: (upstream: net.Socket | null) => void,
): void {
  const colon = authority.lastIndexOf(':');
  const name = authority.slice(0, colon);
  const upstream = net.connect({
    host: resolve?.(name) ?? name,
    port: Number(authority.slice(colon + 1)),
    ...(from ? { localAddress: from } : {}),
  });
  const onError = () => done(null);
  upstream.once('error', onError);
  upstream.once('connect', () => {
    upstream.off('error', onError);
    done(upstream);
  });
}

function join(client: net.Socket, upstream: net.Socket, reply: string | Buffer, rest: string): void {
  // What breaks there breaks here: a polite end would make half a page look whole.
  upstream.on('error', () => (client as net.Socket).resetAndDestroy());
  client.on('close', () => upstream.destroy());
  upstream.on('close', () => client.end());
  if (reply.length > 0) client.write(reply);
  if (rest !== '') upstream.write(rest, 'latin1');
  client.pipe(upstream);
  upstream.pipe(client);
}
