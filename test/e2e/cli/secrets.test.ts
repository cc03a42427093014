import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { jsonLines, lastJson, seine, temporaryFolder } from '../../support/seine-process.ts';
import { openAddressLog } from '../../support/servers/address-log.ts';
import { closedPort, startProxy } from '../../support/servers/proxy-servers.ts';
import { openScrapingApi } from '../../support/servers/scraping-api.ts';

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Each is found nowhere else, and each has characters that URLs, JSON and shells write in their own ways. */
const SECRETS = {
  proxyPassword: 'fr0g&mare/7741',
  envPassword: 'n1ght%owl:8852',
  listPassword: 'sw1ft=hare@9963',
  wrongPassword: 'l0st"lamb+1174',
  apiKey: 'bl4ck?bear/2285',
  token: 'Bearer gr3y#wolf-3396',
  storeAccess: 'qu1ck~otter-4407',
};

/** The secret as it is, and as it travels. */
function formsOf(secret: string): string[] {
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '');
  return [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    base64,
    base64.slice(2, -2),
  ];
}

function filesIn(dir: string): string[] {
  return readdirSync(dir, { recursive: true })
    .map((name) => join(dir, String(name)))
    .filter((path) => statSync(path).isFile());
}

/** Compressed files as they are and unpacked. */
function bytesOf(path: string): string {
  const bytes = readFileSync(path);
  if (!path.endsWith('.gz')) return bytes.toString('latin1');
  return bytes.toString('latin1') + gunzipSync(bytes).toString('latin1');
}

async function openWorld() {
  const received = { tokens: new Set<string | undefined>(), elsewhere: new Set<string | undefined>() };
  const other = await openAddressLog({
    answer(request) {
      received.elsewhere.add(request.headers.authorization);
      return false;
    },
  });
  const site = await openAddressLog({
    answer(request, response) {
      received.tokens.add(request.headers.authorization);
      if (request.url?.startsWith('/moved'))
        response.writeHead(302, { location: `${other.url}/from-site` }).end();
      else if (request.url?.startsWith('/broken')) response.writeHead(500).end();
      else return false;
      return true;
    },
  });
  const api = await openScrapingApi(SECRETS.apiKey);
  const proxies = await Promise.all([
    startProxy({ credentials: { username: 'ann', password: SECRETS.proxyPassword } }),
    startProxy({ kind: 'socks5', credentials: { username: 'bob', password: SECRETS.envPassword } }),
    startProxy({ credentials: { username: 'cy', password: SECRETS.listPassword }, refuses: () => 403 }),
    startProxy({ credentials: { username: 'dan', password: 'another' } }),
  ]);
  for (const each of [site, other, api, ...proxies]) closers.push(() => each.close());
  return { site, other, api, proxies, received };
}

describe('secrets', () => {
  test('of proxies, APIs, headers and settings are in no output and no file of a full run', async () => {
    const folder = temporaryFolder();
    closers.push(() => folder.remove());
    const { path } = folder;
    const { site, other, api, proxies, received } = await openWorld();
    const [files, socks, whole, locked] = proxies;
    const place = (name: string) => encodeURIComponent(name);
    const lines = [
      files!.url(`ann:${place(SECRETS.proxyPassword)}`),
      locked!.url(`dan:${place(SECRETS.wrongPassword)}`),
      `http://ann:${place(SECRETS.proxyPassword)}@127.0.0.1:${await closedPort()}`,
    ];
    writeFileSync(join(path, 'proxies.txt'), lines.join('\n'));
    mkdirSync(join(path, 'mounted'));
    writeFileSync(join(path, 'mounted', 'cy'), `cy:${SECRETS.listPassword}\n`);
    const job = {
      name: 'secretive',
      sources: ['a/1', 'a/2', 'b/1', 'b/2', 'c/1', 'c/2', 'd/1', 'moved/1', 'broken/1'].map(
        (name) => `${site.url}/${name}`,
      ),
      allowPrivate: true,
      redirects: 'follow',
      follow: 'any',
      politeness: { rate: 'max' },
      retry: { attempts: 2, baseMs: 20 },
      identity: { secretHeaders: { [site.url]: { Authorization: { env: 'SITE_TOKEN' } } } },
      proxies: {
        pools: {
          files: { from: { file: 'proxies.txt' }, cooldownSeconds: 0.2 },
          environment: { from: { env: 'PROXY_LIST' } },
          mounted: { from: { list: [whole!.url()], credentials: { secret: 'cy' } } },
        },
        default: 'files',
      },
      api: {
        url: `${api.url}/get?key={key}&url={url}`,
        key: { env: 'API_KEY' },
        statusHeader: 'x-site-status',
        costHeader: 'x-cost',
      },
      routes: [
        { name: 'b', match: '/b/*', proxy: 'environment' },
        { name: 'c', match: '/c/*', proxy: 'mounted' },
        { name: 'd', match: '/d/*', fetcher: 'api' },
      ],
    };
    writeFileSync(join(path, 'job.json'), JSON.stringify(job));
    const env = {
      SEINE_LOG: 'info',
      SEINE_SECRETS: join(path, 'mounted'),
      SEINE_JOB_SECRETS: 'PROXY_LIST,API_KEY,SITE_TOKEN',
      SEINE_S3_ENDPOINT: `http://key:${place(SECRETS.storeAccess)}@127.0.0.1:1`,
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: SECRETS.storeAccess,
      PROXY_LIST: socks!.url(`bob:${place(SECRETS.envPassword)}`).replace('socks5', 'socks5h'),
      API_KEY: SECRETS.apiKey,
      SITE_TOKEN: SECRETS.token,
    };
    const dir = ['--dir', join(path, 'data')];
    const run = (...args: string[]) => seine(args, { env, cwd: path });

    const outputs: Record<string, string> = {};
    const keep = async (...args: string[]) => {
      const { stdout, stderr, code } = await run(...args);
      outputs[args.join(' ')] = stdout + stderr;
      return { stdout, stderr, code };
    };
    const show = async (...args: string[]) => {
      const { code, stderr } = await keep(...args);
      expect(code, `seine ${args.join(' ')}: ${stderr}`).toBe(0);
    };
    await show('run', 'job.json', '--dry-run', ...dir);
    const finished = await keep('run', 'job.json', '--json', ...dir);
    const summary = lastJson({ ...finished, signal: null });
    expect(summary).toMatchObject({ state: 'done', done: 8, dead: 1, apiCost: 5 });

    // All of them were really used.
    expect(received.tokens).toEqual(new Set([SECRETS.token]));
    expect(received.elsewhere).toEqual(new Set([undefined]));
    expect(other.requests.some(({ path: asked }) => asked === '/from-site')).toBe(true);
    expect(api.fetched.length).toBe(1);
    for (const proxy of [files!, socks!, whole!]) expect(proxy.asked.length).toBeGreaterThan(0);
    expect(locked!.asked).toEqual([]);

    for (const what of ['records', 'tasks', 'attempts', 'media', 'history', 'quality']) {
      await show('export', '--what', what, ...dir);
      await show('export', '--what', what, '--format', 'csv', ...dir);
    }
    await show('export', '--what', 'attempts', '--output', join(path, 'data', 'attempts.parquet'), ...dir);
    for (const command of ['status', 'jobs', 'dead', 'hosts', 'doctor']) {
      await show(command, ...dir);
      await show(command, '--json', ...dir);
    }
    await show('page', `${site.url}/a/1`, ...dir);
    // What people get wrong is told, too.
    writeFileSync(join(path, 'proxies.txt'), `http://eve:${place(SECRETS.wrongPassword)}@nowhere\n`);
    expect((await keep('run', 'job.json', '--fresh', ...dir)).code).toBe(2);
    writeFileSync(
      join(path, 'open.json'),
      JSON.stringify({ ...job, sources: [`http://u:${place(SECRETS.token)}@x.example/`] }),
    );
    expect((await keep('run', 'open.json', ...dir)).code).toBe(2);

    const attempts = jsonLines<{ proxy: string | null; fetcher: string }>(
      outputs[`export --what attempts ${dir.join(' ')}`]!,
    );
    expect(new Set(attempts.map(({ proxy }) => proxy)).size).toBeGreaterThanOrEqual(4);
    for (const [command, output] of Object.entries(outputs)) {
      for (const [name, secret] of Object.entries(SECRETS))
        for (const form of formsOf(secret))
          expect(output.includes(form), `${name} as ${form} in the output of seine ${command}`).toBe(false);
    }
    expect(existsSync(join(path, 'data', 'seine.db'))).toBe(true);
    for (const file of filesIn(join(path, 'data'))) {
      const bytes = bytesOf(file);
      for (const [name, secret] of Object.entries(SECRETS))
        for (const form of formsOf(secret))
          expect(bytes.includes(form), `${name} as ${form} in ${file}`).toBe(false);
    }
  });
});
