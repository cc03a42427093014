import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type ShopSite, startShopSite } from '../../../src/sites/shop/shop-site.ts';
import { openDuckDb } from '../duckdb.ts';
import { seineHere } from '../seine-in-process.ts';
import { temporaryFolder } from '../seine-process.ts';
import { get } from '../servers/plain-http.ts';
import type { DocBlock } from './doc-blocks.ts';
import { ROOT } from './docs-text.ts';

/**
 * Runs the blocks of a page in a real shell. `npx seine …` is handed over to this process, which is much cheaper than a
 * process for each command; what keeps running gets one of its own. The shop of the docs is on a port of this machine.
 */

interface ScenarioOptions {
  /** Words of the page, and what stands for them here: `redis.example:6379`. */
  replace?: Record<string, string>;
  env?: Record<string, string>;
  /** Is copied before the page begins: files, and jobs that have run. */
  from?: string;
  /** The page crawls sites of others: here it is the shop, at any speed. */
  isPractice?: boolean;
}

export interface ScenarioResult {
  /** One for each command that failed, with its place. */
  failures: string[];
  /** Blocks in which a command has to fail, and none did. */
  unexpected: string[];
  /** How many commands of Seine have run. */
  commands: number;
  output: string;
  /** Where it was. */
  dir: string;
}

const PRODUCTS = 24;
/** Commands that request pages as the page says; here they may go to this machine, and need not wait. */
const FETCHING = new Set(['run', 'try', 'forecast', 'calibrate']);
/** Commands that keep running: a block of them is `sh other-terminal`, or the page would never end. */
const STAYING = new Set(['serve', 'worker', 'shop', 'ui', 'top', 'hostile', 'mcp']);
/** Dead letters are no failure: the shop has dead links on purpose. */
const FINE = [0, 3];

const SHIM = `#!/usr/bin/env bash
name=$(basename "$0")
if [ "$name" = npx ]; then
  name=$1; shift
  if [ "$name" = node ]; then exec "$DOCS_NODE" "$@"; fi
  if [ "$name" != seine ]; then exec "$DOCS_PROGRAMS/$name" "$@"; fi
fi
case "$name$DOCS_OWN_PROCESS $* " in
  seineyes\\ serve*) exec "$DOCS_NODE" "$DOCS_SEINE" "$@" --listen 127.0.0.1:0 ;;
  seineyes* | seine*' - '*) exec "$DOCS_NODE" "$DOCS_SEINE" "$@" ;;
esac
call=$(mktemp -d "$DOCS_CALLS/XXXXXX")
{ printf '%s\\0' "$name" "$PWD" "$#" "$@"; env -0; } > "$call/call"
exec 3<>"/dev/tcp/127.0.0.1/$DOCS_PORT"
printf '%s\\n' "$call" >&3
read -r code <&3
cat "$call/stderr" >&2
cat "$call/stdout"
exit "$code"
`;

interface Call {
  name: string;
  cwd: string;
  args: string[];
  env: Record<string, string>;
}

interface Answer {
  code: number;
  stdout: string;
  stderr: string;
}

export class DocsShell {
  readonly #folder = temporaryFolder();
  readonly #server: Server;
  #shop: ShopSite | null = null;
  #shopPort = 0;
  #shopIsUsual = false;
  #queue: Promise<unknown> = Promise.resolve();
  #answer: (call: Call) => Promise<Answer> = async () => ({ code: 1, stdout: '', stderr: 'no page\n' });
  #scenarios = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(): Promise<DocsShell> {
    const server = createServer();
    const shell = new DocsShell(server);
    server.on('connection', (socket) => shell.#serve(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    for (const name of ['npx', 'seine', 'duckdb', 'docs-step']) {
      mkdirSync(join(shell.#folder.path, 'bin'), { recursive: true });
      mkdirSync(join(shell.#folder.path, 'calls'), { recursive: true });
      const path = join(shell.#folder.path, 'bin', name);
      writeFileSync(path, SHIM);
      chmodSync(path, 0o755);
    }
    await shell.openShop({});
    return shell;
  }

  get shop(): ShopSite {
    return this.#shop!;
  }

  /** Always at the same address, as in the docs. */
  async openShop(options: { day?: number; isScripted?: boolean }): Promise<void> {
    const isUsual = (options.day ?? 1) === 1 && !options.isScripted;
    if (isUsual && this.#shopIsUsual) return;
    this.#shopIsUsual = isUsual;
    await this.#shop?.close();
    this.#shop = await startShopSite({
      ...options,
      port: this.#shopPort,
      products: PRODUCTS,
      delayScale: 0,
    });
    this.#shopPort = Number(new URL(this.#shop.url).port);
    // Pages that refuse once do so now, and make no command wait.
    const { flakyPaths, throttledPaths } = this.#shop.expected;
    for (const path of [...flakyPaths, ...throttledPaths])
      await get(new URL(path, this.#shop.url).href, { connection: 'close' });
  }

  async close(): Promise<void> {
    await this.#shop?.close();
    await new Promise((resolve) => this.#server.close(resolve));
    this.#folder.remove();
  }

  /** The blocks in a folder of their own, one after the other. */
  async run(
    path: string,
    blocks: readonly DocBlock[],
    options: ScenarioOptions = {},
  ): Promise<ScenarioResult> {
    const dir = join(this.#folder.path, `scenario-${++this.#scenarios}`);
    mkdirSync(join(dir, 'node_modules'), { recursive: true });
    symlinkSync(ROOT, join(dir, 'node_modules/seine'));
    // As `npm init --yes` writes it: a program in a file that ends in .ts could not import there.
    writeFileSync(join(dir, 'package.json'), '{ "name": "docs", "version": "1.0.0", "type": "commonjs" }\n');
    if (options.from !== undefined)
      for (const name of readdirSync(options.from).filter((each) => each !== 'node_modules'))
        cpSync(join(options.from, name), join(dir, name), { recursive: true });
    await this.openShop({});
    const scenario = new Scenario(this, { path, blocks, dir, options, folder: this.#folder.path });
    this.#answer = (call) => scenario.answer(call);
    try {
      return await scenario.run((this.#server.address() as AddressInfo).port);
    } finally {
      await scenario.end();
    }
  }

  /** One command after the other: they share this process, and so its folder and environment. */
  #serve(socket: Socket): void {
    socket.on('error', () => {});
    createInterface(socket).once('line', (folder) => {
      this.#queue = this.#queue.then(async () => {
        const { code, stdout, stderr } = await this.#answer(readCall(join(folder, 'call'))).catch(
          (error) => ({
            code: 70,
            stdout: '',
            stderr: `${error}\n`,
          }),
        );
        writeFileSync(join(folder, 'stdout'), stdout);
        writeFileSync(join(folder, 'stderr'), stderr);
        socket.end(`${code}\n`);
      });
    });
  }
}

function readCall(path: string): Call {
  const [name = '', cwd = '', count = '0', ...rest] = readFileSync(path, 'utf8').split('\0');
  const env = rest.slice(Number(count)).filter((pair) => pair !== '');
  return {
    name,
    cwd,
    args: rest.slice(0, Number(count)),
    env: Object.fromEntries(env.map((pair) => [pair.split('=')[0]!, pair.slice(pair.indexOf('=') + 1)])),
  };
}

interface ScenarioParts {
  path: string;
  blocks: readonly DocBlock[];
  dir: string;
  options: ScenarioOptions;
  folder: string;
}

class Scenario {
  readonly #shell: DocsShell;
  readonly #parts: ScenarioParts;
  readonly #failures: string[] = [];
  readonly #unexpected: string[] = [];
  readonly #background: ChildProcess[] = [];
  #commands = 0;
  #block: DocBlock | null = null;
  #failedInBlock = 0;
  /** Of the server that the page has started. */
  #listening: string | null = null;

  constructor(shell: DocsShell, parts: ScenarioParts) {
    this.#shell = shell;
    this.#parts = parts;
  }

  async run(port: number): Promise<ScenarioResult> {
    const { blocks, dir, path } = this.#parts;
    // A step prints what is to be run, with addresses that only the steps before it have made.
    const lines = blocks.map((_, index) => `eval "$(docs-step ${index})"`);
    const script = `trap 'docs-step failed $? "$BASH_COMMAND"' ERR\n${lines.join('\n')}\ndocs-step end\n`;
    const child = spawn('bash', ['-c', script], {
      cwd: dir,
      env: this.#env(port),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
      });
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    if (code !== 0) this.#failures.push(`${path}: the shell ended with ${code}`);
    return {
      failures: this.#failures,
      unexpected: this.#unexpected,
      commands: this.#commands,
      output,
      dir,
    };
  }

  async end(): Promise<void> {
    for (const child of this.#background) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise((resolve) => child.once('close', resolve));
      process.kill(-child.pid!, 'SIGTERM');
      await ended;
    }
  }

  async answer(call: Call): Promise<Answer> {
    if (call.name === 'docs-step') return this.#step(call.args);
    if (call.name === 'duckdb') return query(call);
    this.#commands++;
    const [command = ''] = call.args;
    if (STAYING.has(command) && !call.args.some((arg) => arg === '--help' || arg === '-h')) {
      this.#fail(`seine ${call.args.join(' ')} keeps running: \`sh other-terminal\` is missing, it`, null);
      return { code: 1, stdout: '', stderr: '' };
    }
    const { code, stdout, stderr } = await inFolder(call, () => seineHere(...this.#forHere(call.args)));
    if (call.args[0] === 'init') this.#moveShop(call.cwd);
    // Also in a pipe, where the shell looks at the last command alone.
    if (!FINE.includes(code ?? 1)) this.#fail(`seine ${call.args.join(' ')}`, code);
    return { code: code ?? 1, stdout, stderr };
  }

  async #step([step = '', code, command]: string[]): Promise<Answer> {
    const done = { code: 0, stdout: '', stderr: '' };
    if (step === 'failed') {
      // The block as a whole ends as its last command did, and those of Seine have said so.
      const isKnown = /^(eval "\$\(docs-step|(npx )?seine )/.test(command ?? '');
      if (!FINE.includes(Number(code)) && !isKnown) this.#fail(command ?? '', Number(code));
      return done;
    }
    const before = this.#block;
    if (before?.kind === 'commands' && before.mayFail && this.#failedInBlock === 0)
      this.#unexpected.push(`${this.#parts.path}:${before.line}`);
    this.#failedInBlock = 0;
    this.#block = step === 'end' ? null : this.#parts.blocks[Number(step)]!;
    const block = this.#block;
    if (block?.kind === 'file') {
      const path = join(this.#parts.dir, block.name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, this.#here(block.text));
    }
    if (block?.kind === 'background') await this.#start(block.text);
    return block?.kind === 'commands' ? { ...done, stdout: this.#here(block.text) } : done;
  }

  #fail(command: string, code: number | null): void {
    const block = this.#block;
    this.#failedInBlock++;
    if (block?.kind === 'commands' && block.mayFail) return;
    this.#failures.push(`${this.#parts.path}:${block?.line}: ${command} ended with ${code}`);
  }

  /** A block that keeps running, in a terminal of its own; the shop belongs to the test. */
  async #start(text: string): Promise<void> {
    const shop = /^npx seine shop(?: --day (\d+))?( --scripted)?/.exec(text);
    if (shop) {
      await this.#shell.openShop({ day: Number(shop[1] ?? 1), isScripted: shop[2] !== undefined });
      return;
    }
    this.#commands++;
    const child = spawn('bash', ['-c', this.#here(text)], {
      cwd: this.#parts.dir,
      env: { ...this.#env(0), DOCS_OWN_PROCESS: 'yes' },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#background.push(child);
    // Until it says its first line: a person waits for that, too.
    const said = await new Promise<string>((resolve) => {
      let output = '';
      const take = (chunk: Buffer) => {
        output += chunk;
        if (output.includes('\n')) resolve(output);
      };
      child.stdout.on('data', take);
      child.stderr.on('data', take);
      child.once('close', () => resolve(output));
    });
    if (child.exitCode !== null) this.#failures.push(`${text} ended: ${said}`);
    this.#listening = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(said)?.[1] ?? this.#listening;
  }

  /** The addresses of the docs are other ones here. */
  #here(text: string): string {
    const shop = this.#shell.shop.url.slice(0, -1);
    const replaced = Object.entries(this.#parts.options.replace ?? {}).reduce(
      (sum, [words, value]) => sum.replaceAll(words, value),
      text,
    );
    return replaced
      .replaceAll('http://127.0.0.1:8080', shop)
      .replaceAll('https://shop.example', shop)
      .replaceAll('shop.example', new URL(shop).host)
      .replaceAll('http://127.0.0.1:7420', this.#listening ?? 'http://127.0.0.1:7420');
  }

  /** The job that `seine init` writes reads the shop at its usual port. */
  #moveShop(dir: string): void {
    for (const name of readdirSync(dir).filter((each) => /\.(ts|yaml|csv)$/.test(each))) {
      const path = join(dir, name);
      writeFileSync(path, this.#here(readFileSync(path, 'utf8')));
    }
  }

  #forHere(args: string[]): string[] {
    const [command = ''] = args;
    if (!this.#parts.options.isPractice || !FETCHING.has(command)) return args;
    return [...args, '--allow-private', ...(args.includes('--rate') ? [] : ['--rate', 'max'])];
  }

  #env(port: number): Record<string, string> {
    const { folder, options, dir } = this.#parts;
    return {
      PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: dir,
      LANG: 'C.UTF-8',
      NO_COLOR: '1',
      SEINE_WORKERS: '1',
      DOCS_NODE: process.execPath,
      DOCS_SEINE: join(ROOT, 'bin/seine.js'),
      DOCS_PROGRAMS: join(ROOT, 'node_modules/.bin'),
      DOCS_CALLS: join(folder, 'calls'),
      DOCS_PORT: String(port),
      ...options.env,
    };
  }
}

/** As if this process were in that folder, with that environment. */
async function inFolder<T>({ cwd, env }: Call, body: () => Promise<T>): Promise<T> {
  const before = { cwd: process.cwd(), env: { ...process.env } };
  const setEnv = (wanted: NodeJS.ProcessEnv) => {
    for (const name of Object.keys(process.env)) if (!(name in wanted)) delete process.env[name];
    Object.assign(process.env, wanted);
  };
  process.chdir(cwd);
  setEnv(env);
  try {
    return await body();
  } finally {
    process.chdir(before.cwd);
    setEnv(before.env);
  }
}

/** `duckdb -c '…'`, by the library. */
async function query(call: Call): Promise<Answer> {
  const database = await openDuckDb();
  try {
    const rows = await inFolder(call, () => database.rows(call.args.at(-1) ?? ''));
    return { code: 0, stdout: rows.map((row) => `${JSON.stringify(row)}\n`).join(''), stderr: '' };
  } catch (error) {
    return { code: 1, stdout: '', stderr: `${error}\n` };
  } finally {
    database.close();
  }
}
