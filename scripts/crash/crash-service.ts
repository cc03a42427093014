import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values } = readOptions({
  start: 'npm run crash-service --',
  about: `kill -9 of \`seine serve\` under batches with callbacks. Needs \`npm run build\`.`,
  options: {
    kills: { count: 100, does: 'how often' },
    urls: { count: 40, does: 'URLs of each batch' },
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});
const KILLS = values.kills;
const URLS = values.urls;
const CLIENTS = 4;
const END_MS = 300_000;
const ANSWER_MS = 10_000;
const SEINE = fileURLToPath(new URL('../../bin/seine.js', import.meta.url));

interface Sent {
  key: string;
  urls: string[];
  id: string | null;
}

const dir = mkdtempSync(join(tmpdir(), 'seine-crash-service-'));
const deliveries: { headers: Record<string, string>; body: string; isSigned: boolean }[] = [];
/** Known once the first server answers, before any batch is sent. */
let webhook: Webhook | null = null;

/** When it comes: a message that is older than five minutes is refused, however it is signed. */
function isSigned(body: string, headers: Record<string, string>): boolean {
  try {
    webhook!.verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

const listen = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};
const origin = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<p>x</p>'));
const receiver = createServer(async (request, response) => {
  const parts = (await request.toArray()) as Buffer[];
  const headers = request.headers as Record<string, string>;
  const body = Buffer.concat(parts).toString();
  deliveries.push({ headers, body, isSigned: isSigned(body, headers) });
  response.end();
});
const [originUrl, receiverUrl] = [await listen(origin), await listen(receiver)];

let child: ChildProcess | null = null;
let api = '';
let port = 0;

async function start(): Promise<void> {
  const args = [SEINE, 'serve', '--listen', `127.0.0.1:${port}`, '--dir', dir, '--allow-private'];
  const env = { ...process.env, SEINE_WEBHOOKS_ALLOW_PRIVATE: 'true' };
  const started = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  child = started;
  const url = await new Promise<string>((resolve, reject) => {
    started.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    for (const stream of [started.stdout!, started.stderr!])
      createInterface({ input: stream }).on('line', (line) => {
        const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
        if (found) resolve(found);
      });
  });
  port = Number(new URL(url).port);
  api = `${url}/api/v1`;
}

async function kill(): Promise<void> {
  const ended = new Promise((resolve) => child!.once('exit', resolve));
  process.kill(-child!.pid!, 'SIGKILL');
  await ended;
}

const pause = (time: number) => new Promise((resolve) => setTimeout(resolve, time));

async function get<T>(path: string): Promise<T> {
  for (;;) {
    const answer = await fetch(api + path).catch(() => null);
    if (answer?.ok) return (await answer.json()) as T;
    await pause(100);
  }
}

/** Sent until it is answered, each time under the same key. */
async function post(batch: Sent): Promise<void> {
  const body = JSON.stringify({ urls: batch.urls, rate: 'max', robots: false, callback_url: receiverUrl });
  const headers = { 'content-type': 'application/json', 'idempotency-key': `"${batch.key}"` };
  while (batch.id === null) {
    const answer = await fetch(`${api}/batch`, { method: 'POST', headers, body }).catch(() => null);
    const reply = answer?.ok
      ? ((await answer.json().catch(() => null)) as { batch_id: string } | null)
      : null;
    if (answer && !answer.ok && answer.status !== 409 && answer.status < 500)
      throw new Error(`${answer.status} ${await answer.text()}`);
    batch.id = reply?.batch_id ?? null;
    if (batch.id === null) await pause(50);
  }
}

const batches: Sent[] = [];
let answered = 0;
let isOver = false;

async function client(): Promise<void> {
  while (!isOver) {
    const number = batches.length;
    const urls = Array.from({ length: URLS }, (_, at) => `${originUrl}/${number}/${at}`);
    const batch: Sent = { key: randomUUID(), urls, id: null };
    batches.push(batch);
    await post(batch);
    answered++;
    await pause(100 + Math.random() * 200);
  }
}

try {
  await start();
  const { secret } = await get<{ secret: string }>('/webhooks/secret');
  webhook = new Webhook(secret);
  const clients = Array.from({ length: CLIENTS }, client);
  for (let kills = 1; kills <= KILLS; kills++) {
    await pause(200 + Math.random() * 1_500);
    // On a busy machine a server may not have answered anything by then: every second one is given the time for it.
    const known = answered;
    const until = Date.now() + ANSWER_MS;
    while (kills % 2 === 0 && answered === known && Date.now() < until) await pause(20);
    await kill();
    await start();
    process.stderr.write(`\rkill ${kills}, ${batches.length} batches`);
  }
  isOver = true;
  await Promise.all(clients);
  const facts = {
    kills: KILLS,
    batches: batches.length,
    urls: 0,
    lost: 0,
    doubled: 0,
    notCalledBack: 0,
    idsDoubled: 0,
    signaturesRefused: 0,
    deliveries: 0,
  };
  const until = Date.now() + END_MS;
  for (const batch of batches) {
    let status = 'running';
    while ((status === 'running' || status === 'queued') && Date.now() < until)
      ({ status } = await get<{ status: string }>(`/jobs/${batch.id}?wait=30`));
    const { results } = await get<{ results: { url: string; status: string }[] }>(
      `/jobs/${batch.id}/results?limit=1000`,
    );
    const done = results.filter((row) => row.status === 'succeeded').map(({ url }) => url);
    facts.urls += batch.urls.length;
    facts.lost += batch.urls.filter((url) => !done.includes(url)).length;
    facts.doubled += results.length - new Set(results.map(({ url }) => url)).size;
  }
  const jobs = new Set(batches.map(({ id }) => id));
  facts.doubled += batches.length - jobs.size;
  const idsOf = () => {
    const ids = new Map<string, Set<string>>();
    for (const { headers, body } of deliveries) {
      const { data } = JSON.parse(body) as { data: { job_id: string } };
      ids.set(data.job_id, (ids.get(data.job_id) ?? new Set()).add(headers['webhook-id']!));
    }
    return ids;
  };
  while ([...jobs].some((id) => !idsOf().has(id!)) && Date.now() < until) await pause(200);
  facts.deliveries = deliveries.length;
  facts.signaturesRefused = deliveries.filter((delivery) => !delivery.isSigned).length;
  const ids = idsOf();
  for (const id of jobs) {
    facts.notCalledBack += ids.has(id!) ? 0 : 1;
    facts.idsDoubled += (ids.get(id!)?.size ?? 1) - 1;
  }
  process.stdout.write(`\n${JSON.stringify(facts)}\n`);
  const { lost, doubled, notCalledBack, idsDoubled, signaturesRefused } = facts;
  if (values.write)
    replaceBetween(
      'docs/reliability.md',
      'crash-service',
      [
        '| kill -9 of the server | batches | URLs accepted | lost | rows doubled | callbacks missing | second ids | signatures refused |',
        '|--:|--:|--:|--:|--:|--:|--:|--:|',
        `| ${facts.kills} | ${facts.batches} | ${facts.urls} | ${lost} | ${doubled} | ${notCalledBack} | ${idsDoubled} | ${signaturesRefused} |`,
      ].join('\n'),
    );
  process.exitCode = lost + doubled + notCalledBack + idsDoubled + signaturesRefused === 0 ? 0 : 1;
  await kill();
} finally {
  isOver = true;
  origin.close();
  receiver.close();
  receiver.closeAllConnections();
  origin.closeAllConnections();
  rmSync(dir, { recursive: true, force: true });
}
