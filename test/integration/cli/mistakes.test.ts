import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { seineHere } from '../../support/seine-in-process.ts';
import { temporaryFolder } from '../../support/seine-process.ts';

const folder = temporaryFolder();
const at = (...parts: string[]) => join(folder.path, ...parts);
let server: Server;

beforeAll(async () => {
  server = createServer(({ url }, response) => {
    if (url === '/robots.txt' || url === '/gone') response.writeHead(404).end();
    else if (url === '/bad') response.writeHead(400).end();
    else response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Oak</h1>');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
});

afterEach(() => vi.unstubAllEnvs());

afterAll(() => {
  server.close();
  folder.remove();
});

test.each([
  [
    ['run', 'shop.example'],
    /^seine: no such file: shop\.example; did you mean https:\/\/shop\.example\/ \?\n/,
  ],
  [['run', 'www.shop.example/chairs'], /did you mean https:\/\/www\.shop\.example\/chairs \?/],
  [['run', 'urls.txt'], /^seine: no such file: .*urls\.txt\n/],
  [['run', 'FOLDER'], /^seine: .*some is a folder\n/],
  [['run', 'JOB'], /^seine: .*job\.yaml is a folder, not a job file\n/],
  [
    ['init', 'shop', '--into', 'FILE/new'],
    /^seine: cannot write to .*some-file\/new: .*\n {2}choose another folder with --into\n/,
  ],
  [['run', 'BINARY'], /^seine: .*image\.txt: it is not text.*\n/],
  [['run', 'UTF16'], /^seine: .*utf16\.txt: it is UTF-16.*UTF-8.*\n/],
])('%j: what was meant', async (args, message) => {
  mkdirSync(at('some'), { recursive: true });
  mkdirSync(at('job.yaml'), { recursive: true });
  writeFileSync(at('some-file'), '');
  writeFileSync(at('image.txt'), Buffer.from('89504e470d0a1a0a0000000d4948445200000010', 'hex'));
  writeFileSync(at('utf16.txt'), Buffer.from('\uFEFFhttps://a.example/\n', 'utf16le'));
  const places: Record<string, string> = {
    FOLDER: at('some'),
    JOB: at('job.yaml'),
    'FILE/new': at('some-file', 'new'),
    BINARY: at('image.txt'),
    UTF16: at('utf16.txt'),
  };
  const given = args.map((arg) => places[arg] ?? arg);
  const dir = args[0] === 'run' ? ['--dir', at('none')] : [];
  const { code, stderr } = await seineHere(...given, ...dir);
  expect(stderr).toMatch(message);
  expect(code).toBe(2);
});

test('SEINE_LOG names its values, and debug shows where an error comes from', async () => {
  vi.stubEnv('SEINE_LOG', 'loud');
  const wrong = await seineHere('status', '--dir', at('none'));
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/SEINE_LOG: 'loud'\n.*`error`, `warn`, `info`, or `debug`/),
  });
  vi.stubEnv('SEINE_LOG', 'debug');
  const { stderr } = await seineHere('status', '--dir', at('none'));
  expect(stderr).toMatch(
    /^seine: no Seine folder at .*\n {2}start a job.*\nSeineError: .*\n +at openFolder /,
  );
});

test('dead letters by code first, several codes at once, and unknown codes are refused', async () => {
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(at('urls.txt'), ['/', '/gone', '/bad'].map((path) => `${url}${path}`).join('\n'));
  const dir = ['--dir', at('data')];
  const run = await seineHere(
    'run',
    at('urls.txt'),
    '--allow-private',
    '--rate',
    'max',
    '--workers',
    '1',
    ...dir,
  );
  expect(run.code).toBe(3);
  expect(run.stderr).toMatch(/1 record|3 requests|4 requests/);
  const dead = await seineHere('dead', ...dir);
  expect(dead.stdout).toMatch(/1 {2}client-error +Another 4xx status\.\n.*\/bad/);
  expect(dead.stdout).toMatch(/1 {2}not-found +Status 404 or 410\.\n.*\/gone/);
  expect((await seineHere('dead', '--hosts', ...dir)).stdout).toMatch(/not-found +127\.0\.0\.1/);
  const codes = async (value: string) =>
    JSON.parse((await seineHere('dead', '--json', '--code', value, ...dir)).stdout).map(
      (group: { code: string }) => group.code,
    );
  expect(await codes('not-found,client-error')).toEqual(['client-error', 'not-found']);
  expect(await codes('not-found')).toEqual(['not-found']);
  const typo = await seineHere('dead', '--code', 'trunkated', ...dir);
  expect(typo).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/there is no failure code 'trunkated'; did you mean truncated\?/),
  });
  rmSync(at('data', 'archive'), { recursive: true, force: true });
  rmSync(at('data', 'warc'), { recursive: true, force: true });
  const page = await seineHere('page', `${url}/`, ...dir);
  expect(page).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/looked in .*data; if the files of the job are elsewhere, pass --blobs/),
  });
});
