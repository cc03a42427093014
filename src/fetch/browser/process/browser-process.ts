import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { ConnectOverCDPTransport } from 'playwright-core';
import { SeineError } from '../../../core/errors.ts';
import { PRIVATE_FOLDER } from '../../../core/file-modes.ts';
import { browserTmpdir } from './browser-user.ts';
import { flagsOf } from './chromium-flags.ts';
import type { Chromium } from './find-chromium.ts';
import { NetworkEvents } from './network-events.ts';
import { fitsSharedMemory } from './shared-memory.ts';
import { siblingFile } from './sibling-file.ts';
import { type ProtocolMessage, WorkerIdentities } from './worker-identities.ts';

interface BrowserProcessOptions {
  chromium: Chromium;
  /** The filtering proxy. */
  proxyUrl: string;
  sandbox: boolean;
  /** Who Chromium runs as; null: the user of this process. */
  user: number | null;
  isAlone: boolean;
  /** Tabs at once. */
  tabsMax: number;
  /** The browser is killed when it has not answered for so long. */
  silenceMs: number;
}

export interface BrowserProcess {
  /** Also the number of its process group. */
  pid: number;
  /** Of this process alone: what the browser writes is in a folder within. */
  folder: string;
  transport: ConnectOverCDPTransport;
  /** Whether Playwright is told of each request of a page. */
  watchNetwork(page: string, isOn: boolean): void;
  /** Tells the watchdog that the browser still answers. */
  beat(): void;
  kill(): void;
  /** From now on it must not keep a worker alive that has nothing else to do. */
  unref(): void;
  /** The last that Chromium said. */
  words(): string;
  /** Resolves when it has ended and its folder is gone. */
  ended: Promise<void>;
}

const START_MS = 30_000;
const PATH = '/usr/local/bin:/usr/bin:/bin';
/** Of what Chromium says about a failed start. */
const WORDS_MAX = 4_096;
/** Another node for a few lines: it needs hardly any heap. */
const NODE_FLAGS = ['--max-old-space-size=32', '--max-semi-space-size=1', '--no-warnings'];

/** Starts Chromium under its watchdog, with a clean environment: what this process knows is no business of a page. */
export async function startBrowser(options: BrowserProcessOptions): Promise<BrowserProcess> {
  const { chromium, user } = options;
  const { folder, home } = await makeFolder(user);
  const sharesInMemory = await fitsSharedMemory(options.tabsMax);
  const environment = {
    PATH,
    HOME: home,
    TMPDIR: home,
    LANG: 'C.UTF-8',
    ...chromium.environment,
  };
  const child = spawn(
    process.execPath,
    [
      ...NODE_FLAGS,
      fileURLToPath(siblingFile('watchdog-main')),
      folder,
      String(options.silenceMs),
      String(user ?? ''),
      'env',
      '-i',
      ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
      'sh',
      '-c',
      // Without core dumps: they are as large as the browser, and of no use here.
      'ulimit -c 0; exec "$0" "$@"',
      chromium.path,
      ...flagsOf({ ...options, folder: home, sharesInMemory }),
    ],
    // What runs as the same user can read the environment of all its processes: this one has none to read.
    { detached: true, stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'], env: { PATH } },
  );
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
  const [beats, , , to, from] = child.stdio as [Writable, Readable, Readable, Writable, Readable];
  for (const stream of child.stdio) stream?.on('error', () => {});
  const words = collectWords(child);
  const pid = await pidOf(child, ended);
  if (pid === null) throw notStarted(words());
  const transport = new PipeTransport(to, from);
  const kill = () => {
    killGroup(pid);
    beats.end();
  };
  return {
    pid,
    folder,
    transport,
    watchNetwork: (page, isOn) => transport.watchNetwork(page, isOn),
    kill,
    words,
    ended,
    unref: () => unref(child),
    beat: () => void beats.write('.'),
  };
}

/** The outer folder stays with this process: whoever owns a folder can put something else in the place of its files. */
async function makeFolder(user: number | null): Promise<{ folder: string; home: string }> {
  const folder = await mkdtemp(join(browserTmpdir(), 'seine-browser-'));
  const home = join(folder, 'home');
  await mkdir(home, { mode: PRIVATE_FOLDER });
  if (user !== null) {
    await chmod(folder, 0o711);
    await chown(home, user, user);
  }
  return { folder, home };
}

function collectWords({ stderr }: ChildProcess): () => string {
  let words = '';
  stderr?.on('data', (bytes: Buffer) => {
    words = (words + bytes.toString('latin1')).slice(-WORDS_MAX);
  });
  return () => words;
}

function pidOf(child: ChildProcess, ended: Promise<void>): Promise<number | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), START_MS);
    const done = (pid: number | null) => {
      clearTimeout(timer);
      resolve(pid);
    };
    child.stdout?.once('data', (bytes: Buffer) => done(Number.parseInt(bytes.toString(), 10) || null));
    void ended.then(() => done(null));
  });
}

function unref(child: ChildProcess): void {
  child.unref();
  for (const stream of child.stdio) (stream as { unref?(): void } | null)?.unref?.();
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has gone already.
  }
}

/** Lambda forbids a call that Chromium makes for each process that it starts, and without which it gives up. */
export function mayNotStartOthers(words: string): boolean {
  return /PR_SET_NO_NEW_PRIVS|Cannot communicate with zygote|GPU process isn't usable/.test(words);
}

export function hasNoSandbox(words: string): boolean {
  return /sandbox/i.test(words) && /No usable sandbox|namespace|SUID/i.test(words);
}

export class NoSandboxError extends SeineError {
  constructor() {
    super('Chromium has no usable sandbox here', {
      hint: 'allow user namespaces, install the Chromium package of your system, or set SEINE_BROWSER_SANDBOX=off',
    });
  }
}

/** Chromium's own words are shown as far as they are plain. */
export function notStarted(words: string): SeineError {
  if (hasNoSandbox(words)) return new NoSandboxError();
  const library = /loading shared libraries: ([\w.+-]{1,80})/.exec(words)?.[1];
  if (library)
    return new SeineError(`Chromium cannot start: the library ${library} is missing`, {
      hint: 'install the Chromium package of your system, or set SEINE_BROWSER to another Chromium',
    });
  return new SeineError('Chromium cannot start', {
    hint: 'try it with --headless --version, or set SEINE_BROWSER to another Chromium',
  });
}

/** Playwright counts its messages from 1. */
const FIRST_ID = 1_000_000_000;

/** Messages to and from the browser: JSON, each ended by a zero byte. */
class PipeTransport implements ConnectOverCDPTransport {
  onmessage?: (message: object) => void;
  onclose?: (reason?: string) => void;
  readonly #to: Writable;
  readonly #workers = new WorkerIdentities();
  readonly #network = new NetworkEvents();
  #nextId = FIRST_ID;
  #pending: Buffer[] = [];
  #isClosed = false;

  constructor(to: Writable, from: Readable) {
    this.#to = to;
    from.on('data', (bytes: Buffer) => this.#take(bytes));
    from.once('close', () => this.#end());
    to.once('close', () => this.#end());
  }

  send(message: object): void {
    if (this.#isClosed) return;
    this.#sendOwn(this.#workers.before(message));
    this.#to.write(`${JSON.stringify(message)}\0`);
  }

  watchNetwork(page: string, isOn: boolean): void {
    if (!this.#isClosed) this.#sendOwn(this.#network.change(page, isOn));
  }

  close(): void {
    this.#to.end();
  }

  #take(bytes: Buffer): void {
    let start = 0;
    for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, start)) {
      const piece = bytes.subarray(start, end);
      this.#deliver(this.#pending.length === 0 ? piece : Buffer.concat([...this.#pending, piece]));
      this.#pending = [];
      start = end + 1;
    }
    if (start < bytes.length) this.#pending.push(bytes.subarray(start));
  }

  /** Each in a turn of its own, as Playwright expects it. */
  #deliver(bytes: Buffer): void {
    setImmediate(() => {
      if (this.#isClosed) return;
      const message = JSON.parse(bytes.toString()) as ProtocolMessage;
      // The answer to a message from here is for no one else.
      if (message.id !== undefined && message.id >= FIRST_ID) return;
      this.#workers.note(message);
      this.#network.note(message);
      this.onmessage?.(message);
    });
  }

  #sendOwn(message: ProtocolMessage | null): void {
    if (message !== null) this.#to.write(`${JSON.stringify({ id: this.#nextId++, ...message })}\0`);
  }

  #end(): void {
    if (this.#isClosed) return;
    setImmediate(() => {
      this.#isClosed = true;
      this.onclose?.();
    });
  }
}
