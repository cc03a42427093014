import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { expect, test } from 'vitest';
import type { AddCalls } from '../../../src/server/api/requests/work.ts';
import { AddedTasks } from '../../../src/server/api/scrape/added-tasks.ts';
import { packTasks } from '../../../src/server/api/scrape/packed-tasks.ts';
import { answerCalls, RemoteCalls } from '../../../src/server/http-thread/calls.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { createJob, T0, tasksOf, temporaryFolder } from '../../support/fixtures.ts';

test('chunks of lists that come at once are each written in a turn of its own, so that other work comes between', async () => {
  const folder = await temporaryFolder();
  const store = openSqliteStore(join(folder.dir, 'seine.db'), { sync: 'normal', checkpointThread: false });
  const { port1, port2 } = new MessageChannel();
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  try {
    const turns: number[] = [];
    const added = new AddedTasks(store);
    const enqueue = store.frontier.enqueue.bind(store.frontier);
    store.frontier.enqueue = (...args) => {
      turns.push(turn);
      return enqueue(...args);
    };
    answerCalls(port1, new Map([['adding', added]]));
    const adding = new RemoteCalls(port2).part<AddCalls>('adding');
    const names = Array.from({ length: 10 }, (_, at) => `job-${at}`);
    const jobs = await Promise.all(names.map((name) => createJob(store, name)));
    count();
    const written = await Promise.all(
      [0, 1].flatMap((part) =>
        jobs.map(({ id }) =>
          adding.write(id, packTasks(tasksOf(`https://a.example/${part}`)), { rejected: 0, now: T0 }),
        ),
      ),
    );
    expect(written).toEqual(written.map(() => ({ accepted: 1, duplicates: 0, dropped: 0 })));
    expect(turns).toHaveLength(20);
    expect(new Set(turns).size).toBe(20);
  } finally {
    isOver = true;
    port1.close();
    await store.close();
    await folder.remove();
  }
});
