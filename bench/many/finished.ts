/** What jobs that are over cost a server that starts. */
import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { change, codeOf, enqueue, leaseOne, settlementOf, tasksOf } from '../../test/support/fixtures.ts';
import type { Scratch } from '../scratch.ts';
import { median, memoryOf, startServer } from './server.ts';

export interface FinishedFacts {
  jobs: number;
  rounds: number;
  emptyMs: number;
  startMs: number;
  emptyMb: number;
  memoryMb: number;
}

const URLS = 3;
/** Long enough for everything that a server looks at now and then. */
const SETTLED_MS = 6_000;

export async function startWithFinished(
  scratch: Scratch,
  options: { jobs: number; rounds: number },
): Promise<FinishedFacts> {
  const { jobs, rounds } = options;
  const full = scratch.diskFolder('finished');
  await fill(join(full, 'seine.db'), jobs);
  const empty = scratch.diskFolder('empty');
  const facts: Record<'emptyMs' | 'startMs' | 'emptyMb' | 'memoryMb', number[]> = {
    ...{ emptyMs: [], startMs: [], emptyMb: [], memoryMb: [] },
  };
  for (let round = -1; round < rounds; round++) {
    const without = await measure(scratch, empty);
    const having = await measure(scratch, full);
    if (round < 0) continue;
    facts.emptyMs.push(without.readyMs);
    facts.startMs.push(having.readyMs);
    facts.emptyMb.push(without.mb);
    facts.memoryMb.push(having.mb);
    process.stderr.write(
      `round ${round + 1}: ${without.readyMs.toFixed(0)} ms and ${without.mb.toFixed(0)} MB empty, ${having.readyMs.toFixed(0)} ms and ${having.mb.toFixed(0)} MB with ${jobs} jobs\n`,
    );
  }
  scratch.remove(full);
  return {
    ...{ jobs, rounds },
    emptyMs: median(facts.emptyMs),
    startMs: median(facts.startMs),
    emptyMb: median(facts.emptyMb),
    memoryMb: median(facts.memoryMb),
  };
}

async function measure(scratch: Scratch, dir: string): Promise<{ readyMs: number; mb: number }> {
  const server = await startServer(scratch, dir);
  try {
    await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
    return { readyMs: server.readyMs, mb: memoryOf(server.pid) };
  } finally {
    await server.end();
  }
}

/** Each was enqueued, leased, settled and finished like any other. */
async function fill(path: string, count: number): Promise<void> {
  const store = openSqliteStore(path, { checkpointThread: true });
  try {
    for (let number = 0; number < count; number++) {
      const name = `finished-${number}`;
      const job = await store.jobs.create({ ...codeOf(name), name, now: Date.now() });
      await enqueue(
        store,
        job,
        tasksOf(
          ...Array.from({ length: URLS }, (_, at) => `https://h${number % 500}.example/${number}/${at}`),
        ),
      );
      const batch = await leaseOne(store, job);
      const done = batch.tasks.map(({ id }) => change.fetched(id));
      await store.frontier.settle(settlementOf(job, batch.id, done));
      if ((await store.jobs.finish(job.id, Date.now())) !== 'done') throw new Error(`${name} is not done`);
    }
  } finally {
    await store.close();
  }
}
