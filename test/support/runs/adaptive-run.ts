import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { jsonLines, seine, startSeine, temporaryFolder } from '../seine-process.ts';

interface AdaptiveFacts {
  /** In the order in which they came; milliseconds. */
  log: { at: number; refused: boolean }[];
  /** What `seine hosts` says of the host afterwards. */
  host: Record<string, unknown>;
}

type AdaptiveLog = AdaptiveFacts['log'];

/** Crawls a host that answers 429 to whatever is above `limit` within a second, until it has seen enough. */
export async function runAdaptively(options: {
  limit: number;
  cap: number;
  pages: number;
  isEnough: (log: AdaptiveLog) => boolean;
}): Promise<AdaptiveFacts> {
  const folder = temporaryFolder();
  const log: AdaptiveLog = [];
  const enough = Promise.withResolvers<void>();
  let served: number[] = [];
  const server = createServer((request, response) => {
    if (request.url === '/robots.txt') return void response.writeHead(404).end();
    const at = performance.now();
    served = served.filter((time) => time > at - 1_000);
    const refused = served.length >= options.limit;
    if (!refused) served.push(at);
    log.push({ at, refused });
    response.writeHead(refused ? 429 : 200, { 'content-type': 'text/html' }).end('<h1>page</h1>');
    if (options.isEnough(log)) enough.resolve();
  });
  try {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const urls = Array.from(
      { length: options.pages },
      (_, index) => `http://127.0.0.1:${port}/page/${index}`,
    );
    const list = join(folder.path, 'urls.txt');
    writeFileSync(list, urls.join('\n'));
    const dir = join(folder.path, 'seine');
    const rate = String(options.cap);
    const run = startSeine(['run', list, '--rate', rate, '--allow-private', '--dir', dir, '--json']);
    await Promise.race([enough.promise, run.finished]);
    run.child.kill('SIGTERM');
    await run.finished;
    const [host] = jsonLines((await seine(['hosts', '--json', '--dir', dir])).stdout);
    return { log, host: host! };
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    folder.remove();
  }
}
