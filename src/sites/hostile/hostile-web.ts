import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { escapeHtml } from '../../core/text/escape-html.ts';
import { HTML, reply } from './answers.ts';
import { type HostileFacts, type HostileVisit, SECURE_PORTS, type SecurePort } from './behaviour.ts';
import { CASES, caseOf, type ListedCase, pathsOf } from './behaviours.ts';
import { createIssuer, createSelfSigned, type Signed } from './certificates.ts';
import { VisitLog } from './visit-log.ts';

/** A server of everything that servers do to crawlers, by path. Raw sockets: `node:http` is too well-behaved. */
export interface HostileWeb {
  /** Without a slash at the end. */
  url: string;
  /** By what is wrong with them; `trusted` is right, for who trusts `authority`. */
  secure: Readonly<Record<SecurePort, string>>;
  /** PEM of the authority behind the certificates. */
  authority: string;
  /** Requests so far, by path. */
  count(path: string): number;
  requests(): number;
  open(): number;
  close(): Promise<void>;
}

export interface HostileOptions {
  host?: string;
  /** Of the plain port; those with TLS follow. 0 lets the system choose all. */
  port?: number;
}

/** Enough for any test, and a bound for who is found by others. */
const CONNECTIONS_MAX = 1_024;
/** A peer that neither sends nor takes a byte for this long has forgotten us. */
const IDLE_MS = 120_000;
const HEAD_BYTES_MAX = 64 * 1024;
const DAY_MS = 86_400_000;

export async function startHostileWeb(options: HostileOptions = {}): Promise<HostileWeb> {
  const { host = '127.0.0.1', port = 0 } = options;
  const shownHost = host === '0.0.0.0' ? '127.0.0.1' : host;
  const doors = new Doors(host);
  const log = new VisitLog();
  const { authority, certificates } = certificatesFor(shownHost, new Date());
  const secure = {} as Record<SecurePort, string>;
  const facts: HostileFacts = {
    url: '',
    secure,
    recent: (visit, withinMs) => log.recent(visit.base, visit.address, withinMs),
  };
  const serve = (socket: net.Socket) => readRequests(socket, (text) => answer(text, socket, log, facts));
  try {
    const plainPort = await doors.open(net.createServer(serve), port);
    facts.url = `http://${shownHost}:${plainPort}`;
    for (const [index, name] of SECURE_PORTS.entries()) {
      const server =
        name === 'stalled' ? net.createServer(() => {}) : tls.createServer(certificates[name], serve);
      const opened = await doors.open(server, port === 0 ? 0 : port + 1 + index);
      secure[name] = `https://${shownHost}:${opened}`;
    }
  } catch (error) {
    await doors.close();
    throw error;
  }
  return {
    url: facts.url,
    secure,
    authority,
    count: (path) => log.countOf(path),
    requests: () => log.requests,
    open: () => doors.sockets.size,
    close: () => doors.close(),
  };
}

type Certificates = Record<Exclude<SecurePort, 'stalled'>, Signed>;

function certificatesFor(host: string, now: Date): { authority: string; certificates: Certificates } {
  const issuer = createIssuer('Hostile Web Authority', now);
  const names = [host, 'localhost'];
  const at = (days: number) => new Date(+now + days * DAY_MS);
  return {
    authority: issuer.cert,
    certificates: {
      trusted: issuer.issue({ names, notBefore: at(-1), notAfter: at(90) }),
      expired: issuer.issue({ names, notBefore: at(-90), notAfter: at(-1) }),
      'wrong-host': issuer.issue({ names: ['wrong.example'], notBefore: at(-1), notAfter: at(90) }),
      'self-signed': createSelfSigned(names, now),
    },
  };
}

/** The servers and sockets that must be closed in the end. */
class Doors {
  readonly sockets = new Set<net.Socket>();
  readonly #host: string;
  readonly #servers: net.Server[] = [];

  constructor(host: string) {
    this.#host = host;
  }

  async open(server: net.Server, port: number): Promise<number> {
    server.maxConnections = CONNECTIONS_MAX;
    server.on('tlsClientError', () => {});
    server.on('connection', (socket: net.Socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
      socket.on('error', () => socket.destroy());
      socket.setNoDelay(true);
      socket.setTimeout(IDLE_MS, () => socket.destroy());
    });
    server.listen(port, this.#host);
    await once(server, 'listening');
    this.#servers.push(server);
    return (server.address() as net.AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await Promise.all(
      this.#servers.map((server) => {
        server.close();
        return once(server, 'close');
      }),
    );
  }
}

/** Calls back with each head that comes, at most as large as is sensible. */
function readRequests(socket: net.Socket, onHead: (text: string) => void): void {
  let text = '';
  socket.on('error', () => socket.destroy());
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1');
    for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
      const head = text.slice(0, end);
      text = text.slice(end + 4);
      onHead(head);
    }
    if (text.length > HEAD_BYTES_MAX) socket.destroy();
  });
}

function answer(head: string, socket: net.Socket, log: VisitLog, web: HostileFacts): void {
  const [requestLine = '', ...lines] = head.split('\r\n');
  const target = requestLine.split(' ')[1] ?? '/';
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  const address = socket.remoteAddress ?? '';
  const found = caseOf(path);
  const count = log.visit(path, found?.base ?? path, address);
  if (found === null) {
    socket.write(plainAnswer(path));
    return;
  }
  const visit: HostileVisit = {
    socket,
    rest: path.slice(found.base.length),
    query: queryAt === -1 ? '' : target.slice(queryAt + 1),
    headers: headersOf(lines),
    address,
    base: found.base,
    count,
    web,
  };
  (found as ListedCase).answer(visit);
}

function plainAnswer(path: string): Buffer {
  if (path === '/') return indexPage();
  if (path === '/robots.txt')
    return reply('200 OK', ['Content-Type: text/plain'], 'User-agent: *\nAllow: /\n');
  return reply('404 Not Found', [], 'there is no such behaviour');
}

function headersOf(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon > 0) headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
}

/** The page that lists everything, with links. */
function indexPage(): Buffer {
  const rows = CASES.map((each) => {
    const links = pathsOf(each).map(
      (path, index) => `<a href="${path}">${index === 0 ? escapeHtml(each.base) : index + 1}</a>`,
    );
    const ending = [each.ending, ...(each.or ?? [])].join(' or ');
    const cells = [links.join(' '), escapeHtml(each.what), ending, escapeHtml(each.why ?? '')];
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  const head = '<tr><th>path</th><th>what it does</th><th>how it should end</th><th>why</th></tr>';
  return reply(
    '200 OK',
    [HTML],
    `<!doctype html>\n<html lang="en"><head><title>The hostile web</title></head><body>
<h1>The hostile web</h1>
<table>${head}\n${rows.join('\n')}\n</table>
<p id="end">the end</p></body></html>\n`,
  );
}
