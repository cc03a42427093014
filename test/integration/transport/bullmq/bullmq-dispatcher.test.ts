import { afterAll } from 'vitest';
import { runDispatcherContract } from '../../../contract/dispatcher-contract.ts';
import { openDispatcher, startWorker } from '../../../support/fleet/bullmq-fleet.ts';
import { type RedisServer, startRedis } from '../../../support/servers/services.ts';

const redis: RedisServer = await startRedis({ own: true });
afterAll(() => redis.stop());

runDispatcherContract('bullmq', async (blobsDir) => {
  const workers = [await startWorker(redis.url, blobsDir), await startWorker(redis.url, blobsDir)];
  const dispatcher = await openDispatcher(redis.url);
  const close = dispatcher.close.bind(dispatcher);
  return Object.assign(dispatcher, {
    async close() {
      await close();
      await Promise.all(workers.splice(0).map((worker) => worker.end()));
    },
  });
});
