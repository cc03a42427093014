import { fork } from 'node:child_process';
import { once } from 'node:events';
import { openHostileSetup } from './hostile-setup.ts';
import { type CaseFacts, endingOf, measureThroughput, type Throughput, visitCase } from './hostile-visits.ts';

/** A worker in a process of its own that visits the hostile web: its memory and its end are its own. */
interface HostileWorker {
  visit(question: { url: string; base: string; media: boolean }): Promise<CaseFacts>;
  /** One batch of all these, with so much time: how they ended, and when. */
  hurry(question: { urls: string[]; budgetMs: number }): Promise<{ endings: string[]; tookMs: number }>;
  measure(question: Parameters<typeof measureThroughput>[1]): Promise<Throughput>;
}

type Verb = keyof HostileWorker;

async function openWork(): Promise<HostileWorker & { close(): Promise<void> }> {
  const setup = await openHostileSetup();
  let warmMb: number | null = null;
  return {
    async visit(question) {
      if (warmMb === null) {
        for (let count = 0; count < 50; count++) await setup.run([`${question.url}/48-slow?ms=1`]);
        warmMb = process.memoryUsage().rss / 1024 ** 2;
      }
      return visitCase(setup, { ...question, warmMb });
    },
    async hurry({ urls, budgetMs }) {
      const startedAt = performance.now();
      const outcomes = await setup.run(urls, { budgetMs, parallel: 64 });
      return {
        endings: outcomes.map(
          (outcome) => `${endingOf(outcome)}${'detail' in outcome ? `: ${outcome.detail}` : ''}`,
        ),
        tookMs: performance.now() - startedAt,
      };
    },
    measure: (question) => measureThroughput(setup, question),
    close: () => setup.close(),
  };
}

async function serve(): Promise<void> {
  const work = await openWork();
  process.on('message', async ({ id, verb, question }: { id: number; verb: Verb; question: never }) => {
    process.send!({ id, answer: await work[verb](question) });
  });
  process.on('disconnect', async () => {
    await work.close();
    process.exit(0);
  });
  process.send!('ready');
}

if (process.send && process.argv[2] === 'hostile-worker') await serve();

export interface WorkerProcess extends HostileWorker {
  /** How it ended, and what it wrote to standard error: warnings too. */
  close(): Promise<{ code: number | null; stderr: string }>;
}

export async function startHostileWorker(env: Record<string, string> = {}): Promise<WorkerProcess> {
  const child = fork(import.meta.filename, ['hostile-worker'], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...process.env, ...env },
  });
  let stderr = '';
  child.stderr!.on('data', (chunk) => {
    stderr += chunk;
  });
  // Not `close`, which never comes once the channel was closed from here.
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const ended = Promise.all([exited, once(child.stderr!, 'close')]).then(([code]) => code);
  const waiting = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>();
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    void ended.then((code) => {
      const error = new Error(`the worker ended with code ${code}: ${stderr}`);
      reject(error);
      for (const question of waiting.values()) question.reject(error);
    });
  });
  child.on('message', ({ id, answer }: { id: number; answer: unknown }) => {
    waiting.get(id)?.resolve(answer);
    waiting.delete(id);
  });
  let lastId = 0;
  const ask = <T>(verb: Verb, question: object) =>
    new Promise<T>((resolve, reject) => {
      const id = ++lastId;
      waiting.set(id, { resolve: resolve as (answer: unknown) => void, reject });
      child.send({ id, verb, question });
    });
  return {
    visit: (question) => ask('visit', question),
    hurry: (question) => ask('hurry', question),
    measure: (question) => ask('measure', question),
    async close() {
      if (child.connected) child.disconnect();
      return { code: await ended, stderr };
    },
  };
}
