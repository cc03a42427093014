import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';

/** HTTP is answered in a thread of its own. The server of these tests runs its jobs in the thread of the test. */

let server: ApiServer;
const threads: Worker[] = [];
const note = (thread: Worker) => void threads.push(thread);

beforeAll(async () => {
  process.on('worker', note);
  server = await openApiServer();
});

afterAll(async () => {
  process.off('worker', note);
  await server.close();
});

const CLIENT = `
  const { workerData: { url, state, statuses } } = require('node:worker_threads');
  (async () => {
    for (const [at, path] of ['/healthz', '/api/v1/jobs', '/api/v1/jobs/job_1', '/api/v1/hosts'].entries())
      statuses[at] = (await fetch(url + path)).status;
    Atomics.store(state, 0, 1);
    Atomics.notify(state, 0);
  })();`;

test('what is only read is answered while the thread of the jobs does something else', async () => {
  const made = await fetch(`${server.url}/api/v1/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ urls: ['http://127.0.0.1:9/'] }),
  });
  expect(await made.json()).toMatchObject({ batch_id: 'job_1' });
  const state = new Int32Array(new SharedArrayBuffer(4));
  const statuses = new Int32Array(new SharedArrayBuffer(16));
  const client = new Worker(CLIENT, { eval: true, workerData: { url: server.url, state, statuses } });
  // The thread of this test stands still until the client has its answers.
  expect(Atomics.wait(state, 0, 0, 60_000)).toBe('ok');
  expect([...statuses]).toEqual([200, 200, 200, 200]);
  await client.terminate();
});

test('a thread that ends is started again at its address', async () => {
  await threads.find(({ threadName }) => threadName === 'http')!.terminate();
  const isBack = () =>
    fetch(`${server.url}/readyz`).then(
      ({ status }) => status,
      () => null,
    );
  await expect.poll(isBack, { timeout: 60_000 }).toBe(200);
  expect(server.log.join('\n')).toContain('is started again');
});

test('a server ends although a call waits in it for minutes', async () => {
  const closing = await openApiServer();
  const made = await fetch(`${closing.url}/api/v1/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    // Nothing listens there: it is tried again and again.
    body: JSON.stringify({ urls: ['http://127.0.0.1:9/'] }),
  });
  const { batch_id: id } = (await made.json()) as { batch_id: string };
  const waiting = fetch(`${closing.url}/api/v1/jobs/${id}?wait=60`).catch(() => null);
  // It is among the calls once another one that came later is answered.
  expect((await fetch(`${closing.url}/api/v1/jobs/${id}`)).status).toBe(200);
  const isClosed = vi.fn();
  const closed = closing.close().then(isClosed);
  await vi.waitFor(() => expect(isClosed).toHaveBeenCalled(), { timeout: 40_000 });
  await Promise.all([closed, waiting]);
});
