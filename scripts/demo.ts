import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { readOptions } from './read-options.ts';

const { values } = readOptions({
  start: 'npm run demo --',
  about: `Starts the bundled shop in a process of its own, scrapes it as a user would, and says what to try next.`,
  options: {
    json: { flag: true, does: 'print the events of the run as JSON, without a dashboard' },
  },
});

const { json } = values;
const dir = '.seine/demo';
const address = `127.0.0.1:${await freePort()}`;

const shop = spawn(process.execPath, ['dist/sites/shop/shop-process.js'], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const [line] = await new Promise<string[]>((resolve, reject) => {
  createInterface({ input: shop.stdout }).once('line', (text) => resolve([text]));
  shop.once('exit', (code) => reject(new Error(`the demo shop ended with code ${code}`)));
});
const { url } = JSON.parse(line!) as { url: string };

rmSync(dir, { recursive: true, force: true });
if (!json) process.stderr.write(`A shop is open at ${url} Seine will now read all of it, politely.\n\n`);
const run = spawn(
  process.execPath,
  [
    'bin/seine.js',
    'run',
    url,
    '--follow',
    '--select',
    'title=h1',
    '--select',
    'price=.price',
    '--rate',
    '40',
    '--parallel',
    '8',
    '--allow-private',
    '--name',
    'demo',
    '--dir',
    dir,
    ...(json ? ['--json'] : [`--ui=${address}`]),
  ],
  { stdio: 'inherit' },
);
const exitCode = await new Promise<number>((resolve) => run.once('exit', (code) => resolve(code ?? 1)));
shop.stdin.end();

const finished = exitCode === 0 || exitCode === 3;
if (finished && !json) {
  process.stderr.write(`
The pages are in ${dir}/warc (WARC files), everything else in ${dir}/seine.db.
The shop has three broken links on purpose: they are the dead letters.

Try next:
  npx node bin/seine.js export demo --dir ${dir} --format csv
  npx node bin/seine.js dead demo --dir ${dir}
  npx node bin/seine.js export demo --dir ${dir} --what tasks
  npx node bin/seine.js ui --dir ${dir}
`);
}
if (finished && !json && process.stdin.isTTY && process.stdout.isTTY) await showUntilKey();
// Dead letters are expected here: the demo succeeded when the job finished.
process.exitCode = finished ? 0 : exitCode;

/** The page of the run stays where it was, now read from the folder. */
async function showUntilKey(): Promise<void> {
  const ui = spawn(process.execPath, ['bin/seine.js', 'ui', '--dir', dir, '--listen', address], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  process.stderr.write(`\nThe dashboard stays open at http://${address} until you press a key.\n`);
  const { stdin } = process;
  stdin.setRawMode(true);
  stdin.resume();
  await new Promise<void>((resolve) => {
    stdin.once('data', () => resolve());
    ui.once('exit', () => resolve());
  });
  stdin.setRawMode(false);
  stdin.pause();
  ui.kill();
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
