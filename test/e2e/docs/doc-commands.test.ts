import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blocksOf } from '../../support/docs/doc-blocks.ts';
import { DocsShell, type ScenarioResult } from '../../support/docs/docs-shell.ts';
import { type ProxyServer, startProxy } from '../../support/servers/proxy-servers.ts';
import { type S3Server, startS3Server } from '../../support/servers/s3-server.ts';
import {
  type PostgresServer,
  type RedisServer,
  startPostgres,
  startRedis,
} from '../../support/servers/services.ts';

/** Every command of the docs that needs no foreign service is run, as it stands there. */

let shell: DocsShell;
let postgres: PostgresServer;
let redis: RedisServer;
let s3: S3Server;
let proxies: ProxyServer[];

beforeAll(async () => {
  const credentials = { username: 'ann', password: 'secret' };
  [shell, postgres, redis, s3, proxies] = await Promise.all([
    DocsShell.open(),
    startPostgres(),
    startRedis(),
    startS3Server(),
    Promise.all(['127.0.0.3', '127.0.0.4'].map((from) => startProxy({ from, credentials }))),
  ]);
});

afterAll(async () => {
  await Promise.all([
    shell.close(),
    postgres.stop(),
    redis.stop(),
    s3.close(),
    ...proxies.map((proxy) => proxy.close()),
  ]);
});

function expectFine(result: ScenarioResult): void {
  expect(result.failures, result.output).toEqual([]);
  expect(result.unexpected, result.output).toEqual([]);
}

/** What the docs call their services, and what they are here. */
async function services() {
  return {
    replace: {
      'postgres://postgres@127.0.0.1:5432/postgres': await postgres.createDatabase(),
      'bullmq://127.0.0.1:6379': redis.url.replace('redis:', 'bullmq:'),
      's3://my-bucket': `s3://${s3.bucket}/${Math.random().toString(36).slice(2)}`,
      '192.0.2.10:8080': `127.0.0.1:${proxies[0]!.port}`,
      '192.0.2.11:8080': `127.0.0.1:${proxies[1]!.port}`,
    },
    env: { ...s3.env, SEINE_S3_ENDPOINT: s3.endpoint },
  };
}

test('the tutorial works from its first line to its last', async () => {
  const result = await shell.run('docs/tutorial.md', blocksOf('docs/tutorial.md'), await services());
  expectFine(result);
  expect(result.commands).toBeGreaterThan(20);
});

describe('the cookbook', () => {
  const recipes = Map.groupBy(blocksOf('docs/cookbook.md'), ({ section }) => section);

  test('has many recipes', () => expect(recipes.size).toBeGreaterThanOrEqual(15));

  test.each([...recipes.keys()])('%s', async (section) => {
    const result = await shell.run('docs/cookbook.md', recipes.get(section)!, await services());
    expectFine(result);
  });
});
