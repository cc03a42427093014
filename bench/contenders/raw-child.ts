import { Worker } from 'node:worker_threads';
import { crawlAlone, type RawResult } from './raw-thread.ts';

const BATCH = 32;
/** Two lists in hand per thread, so that one is always being fetched while the other is answered. */
const BATCHES_PER_THREAD = 2;

function crawlWithThreads(origin: string, threads: number): Promise<RawResult> {
  const workers = Array.from({ length: threads }, () => {
    const worker = new Worker(new URL('./raw-thread.ts', import.meta.url));
    worker.postMessage({ origin });
    return { worker, batches: 0 };
  });
  const seen = new Set(['/']);
  const queue = ['/'];
  let next = 0;
  let out = 0;
  const total: RawResult = { pages: 0, bytes: 0 };
  return new Promise((resolve, reject) => {
    const give = (): void => {
      for (let round = 0; round < BATCHES_PER_THREAD; round++) {
        for (const slot of workers) {
          if (slot.batches > round || next === queue.length) continue;
          const paths = queue.slice(next, next + BATCH);
          next += paths.length;
          slot.batches += 1;
          out += 1;
          slot.worker.postMessage({ paths });
        }
      }
    };
    for (const slot of workers) {
      slot.worker.on('error', reject);
      slot.worker.on('message', (answer: { pages: number; bytes: number; links: string[] }) => {
        slot.batches -= 1;
        out -= 1;
        total.pages += answer.pages;
        total.bytes += answer.bytes;
        for (const link of answer.links) {
          if (seen.has(link)) continue;
          seen.add(link);
          queue.push(link);
        }
        give();
        if (out > 0) return;
        for (const { worker } of workers) worker.postMessage({ end: true });
        resolve(total);
      });
    }
    give();
  });
}

const [, , url = '', threadsText = '1'] = process.argv;
const origin = new URL(url).origin;
const startedAt = performance.now();
const threads = Number(threadsText);
const result = await (threads === 1 ? crawlAlone(origin) : crawlWithThreads(origin, threads));
process.stdout.write(`${JSON.stringify({ ...result, seconds: (performance.now() - startedAt) / 1000 })}\n`);
