import { escapeHtml } from '../../core/text/escape-html.ts';
import type { Answer, HostileVisit } from './behaviour.ts';

/** The words of behaviours: bytes on a socket, exactly as they stand. */

/** A page that shows whether it came whole: its heading at the beginning, its mark at the end. */
export function pageOf(title: string, body = ''): string {
  return `<!doctype html>\n<html><head><title>${title}</title></head><body><h1>${title}</h1>\n${body}<p id="end">the end</p></body></html>\n`;
}

export const HTML = 'Content-Type: text/html; charset=utf-8';
export const OK = `HTTP/1.1 200 OK\r\n${HTML}\r\n`;

/** A whole response with its length. */
export function reply(status: string, headers: readonly string[], body: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(body);
  const head = [`HTTP/1.1 ${status}`, ...headers, `Content-Length: ${bytes.length}`, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes]);
}

export function replyPage(title: string, headers: readonly string[] = [], body = ''): Buffer {
  return reply('200 OK', [HTML, ...headers], pageOf(title, body));
}

/** A page that differs from that of every other path: the same for all of them would be another trick. */
export function ownPage(title: string, { base, rest }: HostileVisit, body = ''): Buffer {
  return replyPage(title, [], `<p>This is ${escapeHtml(base + rest)}.</p>\n${body}`);
}

type Bytes = string | Buffer | ((visit: HostileVisit) => string | Buffer);

function bytesOf(bytes: Bytes, visit: HostileVisit): Buffer {
  const found = typeof bytes === 'function' ? bytes(visit) : bytes;
  return typeof found === 'string' ? Buffer.from(found, 'latin1') : found;
}

/** Sends bytes and leaves the connection open. */
export function sends(bytes: Bytes): Answer {
  return (visit) => void visit.socket.write(bytesOf(bytes, visit));
}

/** Sends bytes, then a FIN. */
export function sendsThenEnds(bytes: Bytes): Answer {
  return (visit) => void visit.socket.end(bytesOf(bytes, visit));
}

/** A reset throws away what the peer has not read yet: time to read it first. */
const READ_MS = 50;

/** Sends bytes, then a RST. */
export function sendsThenResets(bytes: Bytes): Answer {
  return (visit) => {
    visit.socket.write(bytesOf(bytes, visit), () =>
      after(visit, READ_MS, () => visit.socket.resetAndDestroy()),
    );
  };
}

/** Sends a beginning, then one piece after another for as long as the peer stays. */
export function drips(start: string, piece: string, everyMs: number): Answer {
  return ({ socket }) => {
    socket.write(start, 'latin1');
    const timer = setInterval(() => void socket.write(piece, 'latin1'), everyMs);
    socket.once('close', () => clearInterval(timer));
  };
}

/** Sends pieces as fast as the peer takes them, until there is none or the peer goes. */
export function pours(start: string, pieces: (visit: HostileVisit) => Iterator<Buffer>): Answer {
  return (visit) => {
    const { socket } = visit;
    const next = pieces(visit);
    const pour = (): void => {
      while (!socket.destroyed) {
        const { done, value } = next.next();
        if (done) return;
        if (!socket.write(value)) {
          socket.once('drain', pour);
          return;
        }
      }
    };
    socket.write(start, 'latin1');
    pour();
  };
}

/** The same piece for ever. */
export function* endless(piece: string): Generator<Buffer> {
  const bytes = Buffer.from(piece, 'latin1');
  while (true) yield bytes;
}

/** Later, unless the peer has gone. */
export function after({ socket }: HostileVisit, ms: number, act: () => void): void {
  const cancel = () => clearTimeout(timer);
  const timer = setTimeout(() => {
    socket.off('close', cancel);
    act();
  }, ms);
  socket.once('close', cancel);
}
