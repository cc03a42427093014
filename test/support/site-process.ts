import { fork } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import type { LinkedSite } from './linked-site.ts';
import { startLinkedSite } from './linked-site.ts';

/** The linked site in a process of its own, so that its clock is not held up by whoever measures. */
export interface SiteProcess {
  port: number;
  /** Requests so far, in order. */
  log(): Promise<LinkedSite['log']>;
  /** Resolves when so many requests have come in. */
  requests(count: number): Promise<void>;
  close(): Promise<void>;
}

type Question = { id: number; ask: 'log' } | { id: number; ask: 'requests'; count: number };

if (process.send && process.argv[2] === 'site-process') {
  const site = await startLinkedSite(JSON.parse(process.argv[3]!));
  try {
    // The judge must not wait for a core: a late look would make gaps seem shorter than they were.
    setPriority(constants.priority.PRIORITY_HIGHEST);
  } catch {
    // Only root may; the measurement is then as good as the machine is idle.
  }
  process.on('message', async (question: Question) => {
    if (question.ask === 'requests') await site.requests(question.count);
    process.send!({ id: question.id, answer: question.ask === 'log' ? site.log : null });
  });
  process.on('disconnect', () => process.exit(0));
  process.send({ port: site.port });
}

export async function startSiteProcess(options: Parameters<typeof startLinkedSite>[0]): Promise<SiteProcess> {
  const child = fork(import.meta.filename, ['site-process', JSON.stringify(options)]);
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message: { port: number }) => resolve(message.port));
    child.once('exit', (code) => reject(new Error(`the site ended with code ${code}`)));
  });
  let lastId = 0;
  const waiting = new Map<number, (answer: unknown) => void>();
  child.on('message', ({ id, answer }: { id: number; answer: unknown }) => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  const ask = (question: { ask: 'log' } | { ask: 'requests'; count: number }) =>
    new Promise<unknown>((resolve) => {
      const id = ++lastId;
      waiting.set(id, resolve);
      child.send({ id, ...question });
    });
  return {
    port,
    log: async () => (await ask({ ask: 'log' })) as LinkedSite['log'],
    requests: async (count) => void (await ask({ ask: 'requests', count })),
    async close() {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.disconnect();
      await exited;
    },
  };
}
