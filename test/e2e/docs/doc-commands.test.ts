import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blocksOf, type DocBlock } from '../../support/docs/doc-blocks.ts';
import { DocsShell, type ScenarioResult } from '../../support/docs/docs-shell.ts';
import { ABOUT_SEINE } from '../../support/docs/docs-text.ts';
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
      'bullmq://redis.example:6379': redis.url.replace('redis:', 'bullmq:'),
      'createdb seine': 'true',
      'postgres://me@db.example/seine': await postgres.createDatabase(),
      's3://my-bucket': `s3://${s3.bucket}/${randomUUID()}`,
      'https://minio.example:9000 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…': s3.endpoint,
      '/mnt/archive': '$PWD/archive',
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

/** A folder of somebody who has worked for a while: job files, lists, and a job that ran twice. */
const USED: DocBlock[] = [
  file(
    'shop.yaml',
    `name: shop
sources: https://shop.example/
follow: [{ match: /product/*, priority: 10 }, { match: /category/* }]
routes: [{ name: product, match: /product/*, select: { title: h1, price: .price, sku: .sku } }]
records: { history: true }
allowPrivate: true
politeness: { rate: max }
`,
  ),
  file(
    'shop.ts',
    "export default { name: 'shop', sources: 'https://shop.example/', routes: [{ name: 'p', select: { title: 'h1' } }] };\n",
  ),
  file('job.yaml', 'sources: [https://shop.example/about, https://shop.example/nothing]\n'),
  file(
    'urls.txt',
    'https://shop.example/about\nhttps://shop.example/help\nhttps://shop.example/help/returns\n',
  ),
  file('more.csv', 'url,shelf\nhttps://shop.example/help/shipping,top\n'),
  file(
    'pictures.csv',
    'url,caption\nhttps://shop.example/images/1.svg,a lamp\nhttps://shop.example/images/logo.png,a mark\n',
  ),
  file(
    'sitemap.xml',
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://shop.example/about</loc></url></urlset>',
  ),
  commands('npx seine run shop.yaml; npx seine run shop.yaml --fresh'),
];

function file(name: string, text: string): DocBlock {
  return { kind: 'file', name, text, line: 0, section: '' };
}

function commands(text: string): DocBlock {
  return { kind: 'commands', text, mayFail: false, line: 0, section: '' };
}

describe('reference pages', () => {
  const inScenarios = ['docs/tutorial.md', 'docs/cookbook.md'];
  const pages = ABOUT_SEINE.filter(
    (path) => !inScenarios.includes(path) && blocksOf(path).some(({ kind }) => kind === 'commands'),
  );
  let used: string;

  beforeAll(async () => {
    const result = await shell.run('what was there before', USED, { isPractice: true });
    expectFine(result);
    used = result.dir;
  });

  test('are many', () => expect(pages.length).toBeGreaterThan(15));

  test.each(pages)('%s', async (path) => {
    const result = await shell.run(path, blocksOf(path), {
      ...(await services()),
      isPractice: true,
      from: used,
    });
    expectFine(result);
    expect(result.commands).toBeGreaterThan(0);
  });
});
