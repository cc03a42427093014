/**
 * The raw bound: undici and a scan for links, nothing stored, nothing checked. What a durable crawler on Node
 * cannot pass. Run alone it follows links with one Set; as a thread it fetches the lists its parent sends.
 */
import { parentPort } from 'node:worker_threads';
import { Pool } from 'undici';

const PARALLEL = 64;
const HREF = Buffer.from('<a ');

/** Finds `href="…"` of each `<a `; good enough for this site, and the cheapest way there is. */
function scanLinks(body: Buffer, each: (path: string) => void): void {
  const text = body.latin1Slice(0, body.length);
  let at = text.indexOf('<a ');
  while (at !== -1) {
    const start = text.indexOf('href="', at + HREF.length) + 6;
    const end = text.indexOf('"', start);
    each(text.slice(start, end));
    at = text.indexOf('<a ', end);
  }
}

function fetchPage(pool: Pool, path: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    pool.dispatch(
      { method: 'GET', path },
      {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData(_controller, chunk) {
          chunks.push(chunk);
        },
        onResponseEnd() {
          resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
        },
        onResponseError(_controller, error) {
          reject(error);
        },
      },
    );
  });
}

export interface RawResult {
  pages: number;
  bytes: number;
}

export async function crawlAlone(origin: string): Promise<RawResult> {
  const pool = new Pool(origin, { connections: PARALLEL, pipelining: 1 });
  const seen = new Set(['/']);
  const queue = ['/'];
  let bytes = 0;
  let next = 0;
  let active = 0;
  await new Promise<void>((resolve, reject) => {
    const add = (path: string): void => {
      if (seen.has(path)) return;
      seen.add(path);
      queue.push(path);
    };
    const turn = (): void => {
      while (active < PARALLEL && next < queue.length) {
        active += 1;
        fetchPage(pool, queue[next++]!).then((body) => {
          active -= 1;
          bytes += body.length;
          scanLinks(body, add);
          if (active === 0 && next === queue.length) resolve();
          else turn();
        }, reject);
      }
    };
    turn();
  });
  await pool.close();
  return { pages: next, bytes };
}

/** Thread side: gets lists of paths, answers each page with the links it has not sent before. */
if (parentPort !== null) {
  const port = parentPort;
  let pool: Pool | undefined;
  const sent = new Set<string>();
  port.on('message', (message: { origin?: string; paths?: string[]; end?: true }) => {
    if (message.origin !== undefined)
      pool = new Pool(message.origin, { connections: PARALLEL, pipelining: 1 });
    if (message.end) void pool?.close().then(() => port.close());
    const paths = message.paths ?? [];
    if (paths.length === 0 || pool === undefined) return;
    const links: string[] = [];
    let bytes = 0;
    let left = paths.length;
    for (const path of paths) {
      void fetchPage(pool, path).then((body) => {
        bytes += body.length;
        scanLinks(body, (link) => {
          if (sent.has(link)) return;
          sent.add(link);
          links.push(link);
        });
        left -= 1;
        if (left === 0) port.postMessage({ pages: paths.length, bytes, links });
      });
    }
  });
}
