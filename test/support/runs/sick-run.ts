import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { lastJson, startSeine, temporaryFolder } from '../seine-process.ts';

/** How a sick page fails, every time. */
export type Sickness = '503' | '500' | 'reset' | 'timeout';

interface SickRunOptions {
  sickness: Sickness;
  /** Sick pages of each host, spread evenly among the healthy ones. */
  sick: number;
  healthy: number;
  hosts: number;
  rate: number;
  /** Ends the run once every healthy page has been served; else it runs to its end. */
  untilServed?: boolean;
}

interface SickRun {
  /** Healthy pages that were served. */
  served: number;
  /** From the first request to the last healthy page. */
  ms: number;
  requests: number;
  /** Requests of sick pages before the last healthy page was served. */
  sickBefore: number;
  /** Of the whole run; null when it was ended early. */
  counters: Record<string, unknown> | null;
}

/** Long enough for a page that answers on a busy machine, short enough for a script. */
const HEADERS_TIMEOUT_MS = 2_000;

/** A run over hosts of which some pages always fail. The hosts tell when what was served. */
export async function crawlSickPages(options: SickRunOptions): Promise<SickRun> {
  const { sickness, sick, healthy, hosts, rate } = options;
  const served = new Map<string, number>();
  let requests = 0;
  let sickBefore = 0;
  let firstAt = 0;
  let allServed = () => {};
  const done = new Promise<void>((resolve) => {
    allServed = resolve;
  });
  const server = createServer((request, response) => {
    const at = performance.now();
    if (request.url === '/robots.txt') {
      response.writeHead(404).end();
      return;
    }
    requests++;
    firstAt ||= at;
    if (request.url!.startsWith('/sick/')) {
      if (served.size < healthy * hosts) sickBefore++;
      if (sickness === 'timeout') return;
      if (sickness === 'reset') request.socket.resetAndDestroy();
      else response.writeHead(Number(sickness), { 'content-type': 'text/html' }).end('<p>no</p>');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>page</h1>');
    served.set(`${request.headers.host}${request.url}`, at);
    if (served.size === healthy * hosts) allServed();
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const { port } = server.address() as AddressInfo;
  const folder = temporaryFolder();
  try {
    const urls: string[] = [];
    const every = sick === 0 ? Number.POSITIVE_INFINITY : Math.floor((healthy + sick) / sick);
    for (let page = 0, ill = 0; page < healthy + sick; page++) {
      const isSick = page % every === 0 && ill < sick;
      if (isSick) ill++;
      for (let host = 1; host <= hosts; host++)
        urls.push(`http://127.0.0.${host}:${port}/${isSick ? 'sick' : 'well'}/${page}`);
    }
    const list = join(folder.path, 'urls.txt');
    writeFileSync(list, urls.join('\n'));
    const job = {
      name: 'sick',
      sources: [{ file: list }],
      allowPrivate: true,
      politeness: { rate },
      ...(sickness === 'timeout' ? { timeouts: { headersMs: HEADERS_TIMEOUT_MS } } : {}),
    };
    const file = join(folder.path, 'job.json');
    writeFileSync(file, JSON.stringify(job));
    const run = startSeine(['run', file, '--dir', join(folder.path, 'seine'), '--json']);
    const ended = run.finished;
    await Promise.race([options.untilServed ? done : ended, ended]);
    const finished = options.untilServed ? await run.killTree() : await ended;
    return {
      served: served.size,
      ms: Math.max(0, ...served.values()) - firstAt,
      requests,
      sickBefore,
      counters: options.untilServed ? null : lastJson(finished),
    };
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    folder.remove();
  }
}
