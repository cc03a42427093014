/** The loop that anybody would write, in its quickest form: undici, md5, writeFile, so many at once; one process. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Pool } from 'undici';

const [, , list = '', folder = '', parallelText = '64'] = process.argv;
const parallel = Number(parallelText);
const urls = readFileSync(list, 'utf8').trim().split('\n');
await mkdir(folder, { recursive: true });
const startedAt = performance.now();
const pool = new Pool(new URL(urls[0]!).origin, { connections: parallel, pipelining: 1 });
let next = 0;
let bytes = 0;

/** `dispatch` with callbacks takes 15 % less CPU than `request` with a body stream. */
function download(path: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    pool.dispatch(
      { method: 'GET', path },
      {
        onRequestStart() {},
        onResponseStart(_controller, status) {
          if (status !== 200) reject(new Error(`status ${status} for ${path}`));
        },
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

async function work(): Promise<void> {
  while (next < urls.length) {
    const picture = await download(new URL(urls[next++]!).pathname);
    bytes += picture.length;
    await writeFile(join(folder, `${hash('md5', picture)}.jpg`), picture);
  }
}

await Promise.all(Array.from({ length: parallel }, work));
await pool.close();
const seconds = (performance.now() - startedAt) / 1000;
process.stdout.write(`${JSON.stringify({ pages: urls.length, seconds, bytes })}\n`);
