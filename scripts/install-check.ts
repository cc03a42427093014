import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readOptions } from './read-options.ts';

const { words } = readOptions({
  start: 'npm run install-check --',
  about: `Packs the package and installs it in an empty project under each supported Node: the command, the library, its types
under strict \`tsc\`, and a job file with a handler have to work there, without a warning.`,
  words: { shown: 'version of Node' },
});
const ROOT = join(import.meta.dirname, '..');
const NODES = words.length > 0 ? words : ['22.19.0', '24', '26'];
const MEGABYTES_MAX = 120;

function run(command: string, args: string[], cwd: string): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Blocks of the disk, as `du` counts them: a small file takes a whole one. esbuild's program has two names, and takes its room once. */
function bytesOf(dir: string): number {
  const files = readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)));
  return [...new Map(files.map(({ ino, blocks }) => [ino, blocks * 512])).values()].reduce(
    (sum, size) => sum + size,
    0,
  );
}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

const JOB = (url: string) => `import { defineJob } from 'seine';
export default defineJob({
  sources: '${url}',
  allowPrivate: true,
  routes: [{ name: 'page', handler: (page) => ({ title: page.textOf('h1') }) }],
});
`;

const LIBRARY = `import { EXIT_CODES, FAILURES, openSeine, SeineError, SKIPS, defineJob } from 'seine';
import type { RunView } from 'seine';
const state: RunView['job']['state'] = 'done';
for (const value of [EXIT_CODES, FAILURES, openSeine, SeineError, SKIPS, defineJob, state])
  if (value === undefined) throw new Error('an export is missing');
console.log('library works');
`;

/** With its two streams together: a warning on either is one. */
async function output(
  command: string,
  args: string[],
  cwd: string,
): Promise<{ code: number | null; text: string }> {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      text += chunk;
    });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, text };
}

async function check(version: string, tarball: string, url: string): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'seine-install-'));
  try {
    writeFileSync(join(dir, 'package.json'), '{ "name": "empty", "private": true, "type": "module" }\n');
    run('npm', ['install', '--no-audit', '--no-fund', tarball], dir);
    const megabytes = bytesOf(join(dir, 'node_modules')) / 1e6;
    expect(megabytes < MEGABYTES_MAX, `the installation has ${megabytes.toFixed(0)} MB`);
    run(
      'npm',
      ['install', '--no-audit', '--no-fund', `node@${version}`, 'typescript@6', '@types/node@24'],
      dir,
    );
    const node = join(dir, 'node_modules/node/bin/node');
    const seine = join(dir, 'node_modules/seine/bin/seine.js');
    mkdirSync(join(dir, 'src'));
    writeFileSync(join(dir, 'src/shop.ts'), JOB(url));
    writeFileSync(join(dir, 'src/library.ts'), LIBRARY);
    writeFileSync(
      join(dir, 'tsconfig.json'),
      '{ "compilerOptions": { "strict": true, "module": "nodenext", "target": "es2023", "rootDir": "src", "outDir": "out", "types": ["node"], "lib": ["es2023"] }, "include": ["src"] }',
    );
    run(node, ['node_modules/typescript/bin/tsc'], dir);
    const library = await output(node, ['out/library.js'], dir);
    expect(library.text === 'library works\n', `the library said: ${library.text}`);
    const job = await output(node, [seine, 'run', 'src/shop.ts'], dir);
    expect(job.code === 0 && !/warning/i.test(job.text), `the job said: ${job.text}`);
    const records = await output(node, [seine, 'export', 'shop'], dir);
    expect(records.text.includes('"title":"Oak"'), `the records are: ${records.text}`);
    return `Node ${version}: works, ${megabytes.toFixed(0)} MB`;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const site = createServer(({ url }, response) => {
  response.writeHead(url === '/robots.txt' ? 404 : 200, { 'content-type': 'text/html' }).end('<h1>Oak</h1>');
}).listen(0, '127.0.0.1');
await new Promise((resolve) => site.once('listening', resolve));
const packed = mkdtempSync(join(tmpdir(), 'seine-pack-'));
try {
  run('npm', ['pack', '--pack-destination', packed], ROOT);
  const tarball = join(packed, readdirSync(packed)[0]!);
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  for (const version of NODES) console.log(await check(version, tarball, url));
} finally {
  site.close();
  rmSync(packed, { recursive: true, force: true });
}
