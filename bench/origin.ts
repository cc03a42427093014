/** `node bench/origin.ts <folder>`: serves a folder from memory; answers `count` and `log` on stdin. */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const folder = process.argv[2] ?? '.';
const bodies = new Map<string, Buffer>();
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const path = join(entry.parentPath, entry.name).slice(folder.length);
  bodies.set(path === '/index.html' ? '/' : path, readFileSync(join(entry.parentPath, entry.name)));
}
let requests = 0;
let log: string[] = [];

function openServer(logged: boolean): Promise<number> {
  const server: Server = createServer({ keepAliveTimeout: 300_000 }, (request, response) => {
    requests += 1;
    const path = request.url ?? '/';
    const body = bodies.get(path);
    const status = body === undefined ? 404 : 200;
    if (logged) log.push(`${status} ${path}`);
    const type = path.endsWith('.txt') ? 'text/plain' : 'text/html; charset=utf-8';
    response.writeHead(status, { 'content-type': type, 'content-length': body?.length ?? 0 });
    response.end(body);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
  });
}

const answer = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`);
answer({ port: await openServer(false), loggedPort: await openServer(true) });
const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  if (line === 'count') return answer(requests);
  answer(log);
  log = [];
});
// The parent is gone, so nobody needs the site any more.
input.on('close', () => process.exit(0));
