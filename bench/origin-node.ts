/** The origin where there is no nginx: a process of its own on node:http with the site read into memory. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { BENCH_FOLDER } from './contenders/contender.ts';
import type { Origin } from './origin-nginx.ts';

export async function openNodeOrigin(site: string): Promise<Origin> {
  const child = spawn(process.execPath, [join(BENCH_FOLDER, 'origin.ts'), site], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async <T>(question: string): Promise<T> => {
    if (question !== '') child.stdin.write(`${question}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error('the built-in origin ended');
    return JSON.parse(value) as T;
  };
  const { port, loggedPort } = await ask<{ port: number; loggedPort: number }>('');
  return {
    kind: 'built-in node:http',
    pid: child.pid ?? 0,
    url: `http://127.0.0.1:${port}/`,
    loggedUrl: `http://127.0.0.1:${loggedPort}/`,
    requestsSeen: () => ask<number>('count'),
    takeLog: () => ask<string[]>('log'),
    async close() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
