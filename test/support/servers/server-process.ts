import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chown, mkdtemp } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface ServerUser {
  uid: number;
  gid: number;
}

/** Who runs servers that refuse to be root; null is whoever runs the tests. */
function findServerUser(): ServerUser | null {
  if (process.getuid?.() !== 0) return null;
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const fields = lines.find((line) => line.startsWith(`${name}:`))?.split(':');
    if (fields) return { uid: Number(fields[2]), gid: Number(fields[3]) };
  }
  throw new Error('there is neither a user postgres nor nobody to run a server as');
}

/** A port that was free a moment ago. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (!address || typeof address === 'string') throw new Error('there is no port');
  return address.port;
}

/** Reads process ids, one a line, until the tests are gone; then ends the last one and removes the folder. */
const WATCH = `
folder=$1
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
  kill -QUIT "$pid"
  for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$pid" || break; sleep 0.2; done
  kill -9 "$pid"
fi
rm -rf "$folder"
`;

/** A folder for one server, which may be started and ended again and again in it. */
export class ServerHome {
  readonly folder: string;
  readonly #user: ServerUser | null;
  readonly #watch: ChildProcess;
  #server: ChildProcess | null = null;
  #ended: Promise<void> = Promise.resolve();
  #output = '';

  private constructor(folder: string, user: ServerUser | null) {
    this.folder = folder;
    this.#user = user;
    // Apart from the terminal: Ctrl-C must not end it before the tests.
    this.#watch = spawn('/bin/sh', ['-c', WATCH, 'watch', folder], {
      ...user,
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#watch.stdin!.on('error', () => {});
    this.#watch.unref();
    (this.#watch.stdin as Socket).unref();
  }

  static async make(name: string): Promise<ServerHome> {
    const user = findServerUser();
    const folder = await mkdtemp(join(tmpdir(), `seine-${name}-`));
    if (user) await chown(folder, user.uid, user.gid);
    return new ServerHome(folder, user);
  }

  /** What the server wrote last, for messages. */
  get output(): string {
    return this.#output.trim();
  }

  get running(): boolean {
    return this.#server !== null;
  }

  /** Runs a program to its end as the server's user. */
  async run(program: string, args: string[]): Promise<void> {
    const child = this.#spawn(program, args);
    const code = await new Promise((resolve) => child.once('close', resolve));
    if (code !== 0) throw new Error(`${program} ended with code ${code}: ${this.output}`);
  }

  start(program: string, args: string[]): void {
    if (this.#server) throw new Error('the server runs already');
    const child = this.#spawn(program, args);
    this.#server = child;
    this.#watch.stdin!.write(`${child.pid}\n`);
    this.#ended = new Promise((resolve) =>
      child.once('exit', () => {
        this.#server = null;
        this.#watch.stdin!.write('\n');
        resolve();
      }),
    );
  }

  /** Resolves when neither the server nor a child of it is left. `SIGKILL` kills them all. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const pid = this.#server?.pid;
    if (pid === undefined) return;
    const children = readChildren(pid);
    process.kill(pid, signal);
    if (signal === 'SIGKILL') for (const child of children) killQuietly(child);
    await this.#ended;
    while (children.some(isAlive)) await delay(5);
  }

  async remove(): Promise<void> {
    const gone = new Promise((resolve) => this.#watch.once('exit', resolve));
    this.#watch.stdin!.end();
    this.#watch.ref();
    await gone;
  }

  #spawn(program: string, args: string[]): ChildProcess {
    const child = spawn(program, args, {
      ...this.#user,
      cwd: this.folder,
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const keep = (chunk: Buffer) => {
      this.#output = (this.#output + chunk.toString()).slice(-2_000);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error) => keep(Buffer.from(String(error))));
    return child;
  }
}

function readChildren(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  } catch {
    // Not Linux: children notice by themselves that their parent is gone.
    return [];
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

/** A zombie is dead: nobody may be there to collect it. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
