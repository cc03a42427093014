import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { jsonLines, lastJson, seine, startSeine, temporaryFolder } from '../seine-process.ts';

/** What the code of a job does on a poison page. */
const DEEDS = {
  'process.exit(1)': 'process.exit(1);',
  'process.exit(1) behind an await':
    'await new Promise((resolve) => setTimeout(resolve, 5)); process.exit(1);',
  'a forgotten await': "(async () => { await null; throw new Error('forgotten'); })();",
  'an endless loop': 'for (;;);',
  'a death of the whole process': "process.kill(process.pid, 'SIGKILL');",
} as const;
export type Deed = keyof typeof DEEDS;

interface PoisonRun {
  /** Runs that a supervisor had to start. */
  starts: number;
  ms: number;
  requests: number;
  counters: Record<string, unknown>;
  /** Dead letters, by path and code. */
  dead: { path: string; code: string }[];
  /** The most often that a page was asked for which is not poison. */
  innocentRequests: number;
}

/** A supervisor gives up after so many starts. */
const STARTS_MAX = 15;

/** A run over pages of which some are poison, started again whenever its process dies. */
export async function crawlPoison(options: {
  deed: Deed;
  pages: number;
  poison: readonly number[];
  taskMs?: number;
  workers?: number;
}): Promise<PoisonRun> {
  const { deed, pages, poison, taskMs = 60_000, workers = 1 } = options;
  const requests = new Map<string, number>();
  const server = createServer((request, response) => {
    requests.set(request.url!, (requests.get(request.url!) ?? 0) + 1);
    response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>page</h1>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const folder = temporaryFolder();
  try {
    const file = join(folder.path, 'job.mjs');
    writeFileSync(file, jobOf(origin, { deed, pages, poison, taskMs }));
    const dir = ['--dir', join(folder.path, 'seine')];
    const startedAt = performance.now();
    let starts = 0;
    let finished: Awaited<ReturnType<typeof seine>>;
    do {
      finished = await startSeine(['run', file, ...dir, '--workers', String(workers), '--json']).finished;
      starts++;
    } while (finished.signal !== null && starts < STARTS_MAX);
    const ms = performance.now() - startedAt;
    const letters = await seine(['export', '--what', 'tasks', '--format', 'jsonl', ...dir]);
    const rows = jsonLines<{ url: string; state: string; failureCode: string }>(letters.stdout);
    const isPoison = (path: string) => poison.includes(Number(path.slice(1)));
    return {
      starts,
      ms,
      requests: [...requests.values()].reduce((sum, count) => sum + count, 0),
      counters: finished.signal === null ? lastJson(finished) : {},
      dead: rows
        .filter(({ state }) => state === 'dead')
        .map(({ url, failureCode }) => ({ path: new URL(url).pathname, code: failureCode })),
      innocentRequests: Math.max(
        ...[...requests].filter(([path]) => !isPoison(path)).map(([, count]) => count),
      ),
    };
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    folder.remove();
  }
}

function jobOf(
  origin: string,
  { deed, pages, poison, taskMs }: { deed: Deed; pages: number; poison: readonly number[]; taskMs: number },
): string {
  return `
    const poison = new Set(${JSON.stringify(poison.map((page) => `/${page}`))});
    export default {
      name: 'poison',
      sources: ${JSON.stringify(Array.from({ length: pages }, (_, page) => `${origin}/${page}`))},
      allowPrivate: true,
      politeness: { rate: 'max', robots: false },
      timeouts: { taskMs: ${taskMs} },
      routes: [{
        name: 'page',
        async handler(page) {
          if (poison.has(new URL(page.url).pathname)) { ${DEEDS[deed]} }
          return { url: page.url };
        },
      }],
    };`;
}
