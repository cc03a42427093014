import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openS3Blobs } from '../../../src/blobs/s3-blobs.ts';
import { emulatorEnv } from '../fleet/lambda-setup.ts';
import { type Started, startSeine } from '../seine-process.ts';
import { S3_ENV, startS3Server } from '../servers/s3-server.ts';
import { delay } from '../servers/server-process.ts';
import { type RedisServer, startRedis } from '../servers/services.ts';
import { startTcpProxy } from '../servers/tcp-proxy.ts';
import type { OpenFault } from './fleet-crashes.ts';

/** The parts of a fleet, and how each of them breaks. */

const WORKERS = 2;
/** A network that is away for up to so long. */
const CUT_MS_MAX = 3_000;

interface Fleet {
  args: string[];
  workers: Started[];
  startWorker(): void;
  stop(): Promise<void>;
}

/** Two workers of one thread each, over the Redis at `port`. */
function startFleet(folder: string, port: number): Fleet {
  const dispatch = ['--dispatch', `bullmq://127.0.0.1:${port}`, '--blobs', join(folder, 'blobs')];
  const workers: Started[] = [];
  const startWorker = () =>
    void workers.push(startSeine(['worker', ...dispatch, '--allow-private', '--workers', '1']));
  for (let index = 0; index < WORKERS; index++) startWorker();
  return {
    args: dispatch,
    workers,
    startWorker,
    async stop() {
      await Promise.all(workers.map((worker) => worker.killTree()));
    },
  };
}

const workerKilled: OpenFault = async (folder) => {
  const redis = await startRedis({ own: true });
  const fleet = startFleet(folder, redis.port);
  return {
    name: 'kill -9 of a worker',
    args: fleet.args,
    async strike(random) {
      const [victim] = fleet.workers.splice(Math.floor(random() * fleet.workers.length), 1);
      await victim!.killTree();
      fleet.startWorker();
    },
    async stop() {
      await fleet.stop();
      await redis.stop();
    },
  };
};

/** Workers go on while their coordinator is started again. */
const coordinatorKilled: OpenFault = async (folder) => {
  const redis = await startRedis({ own: true });
  const fleet = startFleet(folder, redis.port);
  return {
    name: 'kill -9 of the coordinator',
    args: fleet.args,
    killsRun: true,
    async strike() {},
    async stop() {
      await fleet.stop();
      await redis.stop();
    },
  };
};

/** A fault of Redis itself, which is really broken. */
const redisFault =
  (name: string, hurt: (redis: RedisServer, random: () => number) => Promise<void>): OpenFault =>
  async (folder) => {
    const redis = await startRedis({ own: true });
    const fleet = startFleet(folder, redis.port);
    return {
      name,
      args: fleet.args,
      strike: (random) => hurt(redis, random),
      async stop() {
        await fleet.stop();
        await redis.stop();
      },
    };
  };

const redisKilled = redisFault('kill -9 of Redis', async (redis, random) => {
  await redis.kill9();
  await delay(random() * 500);
  await redis.restart();
});

const redisFlushed = redisFault('FLUSHALL', async ({ port }) => {
  const { Redis } = await import('ioredis');
  const client = new Redis({ port, host: '127.0.0.1' });
  await client.flushall();
  await client.quit();
});

/** Cut or silent, in turns. */
const redisUnreachable: OpenFault = async (folder) => {
  const redis = await startRedis({ own: true });
  const proxy = await startTcpProxy(redis);
  const fleet = startFleet(folder, proxy.port);
  let strikes = 0;
  return {
    name: 'network to Redis cut or silent',
    args: fleet.args,
    strike: (random) => (strikes++ % 2 === 0 ? proxy.cut : proxy.freeze)(random() * CUT_MS_MAX),
    async stop() {
      await fleet.stop();
      await proxy.close();
      await redis.stop();
    },
  };
};

const s3Unreachable: OpenFault = async () => {
  Object.assign(process.env, S3_ENV);
  const s3 = await startS3Server();
  const proxy = await startTcpProxy({ port: s3.port, host: '127.0.0.1' });
  let strikes = 0;
  const place = `s3://${s3.bucket}/crash`;
  return {
    name: 'network to S3 cut or silent',
    args: ['--workers', String(WORKERS), '--blobs', place],
    env: { ...S3_ENV, SEINE_S3_ENDPOINT: `http://127.0.0.1:${proxy.port}` },
    strike: (random) => (strikes++ % 2 === 0 ? proxy.cut : proxy.freeze)(random() * CUT_MS_MAX),
    openBlobs: () => openS3Blobs(place, { endpoint: s3.endpoint, region: null, pathStyle: null }),
    async stop() {
      await proxy.close();
      await s3.close();
    },
  };
};

/** The environments of an emulated Lambda are processes; one that works is killed. */
const lambdaKilled: OpenFault = async (folder) => {
  const blobs = join(folder, 'blobs');
  const local = startSeine(['lambda', 'local', '--json', '--concurrency', '3', '--blobs', blobs]);
  const printed = await new Promise<{ url: string; credentials: string }>((resolve, reject) => {
    local.child.stdout!.once('data', (chunk: Buffer) => resolve(JSON.parse(chunk.toString())));
    void local.finished.then(({ stderr }) => reject(new Error(stderr)));
  });
  return {
    name: 'kill -9 of a Lambda environment',
    args: ['--dispatch', 'lambda://seine', '--blobs', blobs],
    env: emulatorEnv({ url: printed.url, credentialsFile: printed.credentials }),
    async strike(random) {
      const pid = local.child.pid!;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
      if (children.length > 0)
        process.kill(Number(children[Math.floor(random() * children.length)]), 'SIGKILL');
    },
    async stop() {
      await local.killTree();
    },
  };
};

/** By the name that `npm run crash-fleet -- --only` takes. */
export const FLEET_FAULTS = {
  worker: workerKilled,
  coordinator: coordinatorKilled,
  redis: redisKilled,
  flush: redisFlushed,
  'redis-network': redisUnreachable,
  's3-network': s3Unreachable,
  lambda: lambdaKilled,
} as const;
