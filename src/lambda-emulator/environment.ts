import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { environmentWith } from '../config/load.ts';

/** What a function is run with. */
export interface EnvironmentSettings {
  name: string;
  /** The program with the loop, and the module of the handler; null for this installation's own. */
  runtime: string;
  module: string | null;
  memoryMb: number;
  timeoutMs: number;
  variables: Record<string, string>;
  /** Where environments ask for events: `host:port`. */
  api: string;
  onStart(pid: number): void;
  onLog(text: string): void;
}

/** How one event ended. */
export interface Run {
  requestId: string;
  payload: string;
  failed: boolean;
  /** Zero when the environment was there already. */
  initMs: number;
  durationMs: number;
  memoryMb: number;
  log: string;
}

/** As Lambda says it in its own error: 6 MB and a little. */
export const RESPONSE_BYTES_MAX = 6_291_556;

const LOG_TAIL = 4_096;
/** Lambda gives ten seconds; a laptop that starts many at once may need more. */
const INIT_MS_MAX = 60_000;
const MEMORY_LOOK_MS = 200;

interface Event {
  requestId: string;
  payload: Buffer;
  resolve(run: Run): void;
  startedAt: number | null;
}

/** One process that handles one event at a time, as an environment of Lambda does. */
export class Environment {
  /** Not to be guessed: it stands in the URL where the process gets its events. */
  readonly id = randomBytes(16).toString('hex');
  readonly #settings: EnvironmentSettings;
  readonly #child: ChildProcess;
  readonly #bornAt = performance.now();
  readonly #onEnd: (environment: Environment) => void;
  #event: Event | null = null;
  #asking: ServerResponse | null = null;
  #timer: NodeJS.Timeout | undefined;
  readonly #watch: NodeJS.Timeout;
  #initMs: number | null = null;
  #isCold = true;
  #log = '';
  #mostBytes = 0;
  /** Why it is being killed; null when it dies by itself. */
  #fate: 'timeout' | 'memory' | 'init' | null = null;
  #ended = false;

  constructor(settings: EnvironmentSettings, onEnd: (environment: Environment) => void) {
    this.#settings = settings;
    this.#onEnd = onEnd;
    const { runtime, module, memoryMb, name, variables, api } = settings;
    const heapMb = Math.floor(memoryMb * 0.9);
    this.#child = spawn(
      process.execPath,
      [`--max-old-space-size=${heapMb}`, runtime, ...(module === null ? [] : [module])],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: environmentWith({
          ...variables,
          AWS_LAMBDA_RUNTIME_API: `${api}/environments/${this.id}`,
          AWS_LAMBDA_FUNCTION_NAME: name,
          AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(memoryMb),
          NODE_NO_WARNINGS: '1',
        }),
      },
    );
    if (this.#child.pid !== undefined) settings.onStart(this.#child.pid);
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.on('data', (chunk: Buffer) => this.#take(chunk.toString()));
    this.#child.once('error', () => this.#over());
    this.#child.once('close', () => this.#over());
    this.#watch = setInterval(() => this.#look(), MEMORY_LOOK_MS);
    this.#timer = setTimeout(() => this.#kill('init'), INIT_MS_MAX);
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get isBusy(): boolean {
    return this.#event !== null;
  }

  run(payload: Buffer): Promise<Run> {
    const { promise, resolve } = Promise.withResolvers<Run>();
    this.#event = { requestId: randomUUID(), payload, resolve, startedAt: null };
    this.#log = '';
    this.#hand();
    return promise;
  }

  end(): void {
    this.#child.kill('SIGKILL');
  }

  /** The process asks for its next event. */
  onNext(reply: ServerResponse): void {
    this.#asking = reply;
    if (this.#initMs === null) {
      clearTimeout(this.#timer);
      this.#initMs = performance.now() - this.#bornAt;
    }
    this.#hand();
  }

  /** Null: more than an answer may have. */
  onAnswer(requestId: string, body: Buffer | null, failed: boolean): boolean {
    if (this.#event?.requestId !== requestId) return false;
    if (body === null) {
      const message = `Response payload size exceeded maximum allowed payload size (${RESPONSE_BYTES_MAX} bytes).`;
      this.#finish(errorOf('Function.ResponseSizeTooLarge', message), true);
    } else {
      clearTimeout(this.#timer);
      // What it logged before is in the pipe already, and may be read in this turn only after the answer.
      setImmediate(() => this.#finish(body.toString(), failed));
    }
    return true;
  }

  onInitError(body: Buffer): void {
    if (this.#event) this.#finish(body.toString(), true);
  }

  #hand(): void {
    const event = this.#event;
    if (!this.#asking || !event) return;
    const { timeoutMs } = this.#settings;
    event.startedAt = performance.now();
    this.#timer = setTimeout(() => this.#kill('timeout'), timeoutMs);
    this.#asking.writeHead(200, {
      'content-type': 'application/json',
      'lambda-runtime-aws-request-id': event.requestId,
      'lambda-runtime-deadline-ms': String(Date.now() + timeoutMs),
    });
    this.#asking.end(event.payload);
    this.#asking = null;
  }

  #finish(payload: string, failed: boolean): void {
    const event = this.#event;
    if (!event) return;
    clearTimeout(this.#timer);
    this.#event = null;
    const { requestId, startedAt } = event;
    const run: Run = {
      requestId,
      payload,
      failed,
      initMs: this.#isCold ? (this.#initMs ?? performance.now() - this.#bornAt) : 0,
      durationMs: startedAt === null ? 0 : performance.now() - startedAt,
      memoryMb: Math.ceil(this.#mostBytes / 1024 ** 2),
      log: this.#log,
    };
    this.#isCold = false;
    event.resolve(run);
  }

  #kill(fate: 'timeout' | 'memory' | 'init'): void {
    this.#fate = fate;
    this.#child.kill('SIGKILL');
  }

  /** The process has ended, and with it what it was working on. */
  #over(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#watch);
    clearTimeout(this.#timer);
    const id = this.#event?.requestId ?? '';
    const { timeoutMs } = this.#settings;
    const how = this.#child.signalCode ? 'signal: killed' : `exit status ${this.#child.exitCode ?? 1}`;
    const [type, text] =
      this.#fate === 'timeout' || this.#fate === 'init'
        ? ['Sandbox.Timedout', `Task timed out after ${(timeoutMs / 1_000).toFixed(2)} seconds`]
        : [
            this.#fate === 'memory' ? 'Runtime.OutOfMemory' : 'Runtime.ExitError',
            `Runtime exited with error: ${how}`,
          ];
    this.#finish(errorOf(type!, `RequestId: ${id} Error: ${text}`), true);
    this.#onEnd(this);
  }

  #look(): void {
    const bytes = treeMemoryBytes(this.pid);
    this.#mostBytes = Math.max(this.#mostBytes, bytes);
    if (bytes > this.#settings.memoryMb * 1024 ** 2) this.#kill('memory');
  }

  #take(text: string): void {
    this.#log = (this.#log + text).slice(-LOG_TAIL);
    this.#settings.onLog(text);
  }
}

function errorOf(errorType: string, errorMessage: string): string {
  return JSON.stringify({ errorType, errorMessage });
}

const PAGE_BYTES = 4_096;

/** Memory of a process and of all that it started, as Lambda counts it; zero where the system does not say. */
function treeMemoryBytes(root: number): number {
  let bytes = residentBytes(root, { isRoot: true });
  const left = childrenOf(root);
  for (let pid = left.pop(); pid !== undefined; pid = left.pop()) {
    bytes += residentBytes(pid, { isRoot: false });
    left.push(...childrenOf(pid));
  }
  return bytes;
}

/** What a browser's processes share is counted by none of them, rather than by each. */
function residentBytes(pid: number, { isRoot }: { isRoot: boolean }): number {
  try {
    const [, resident, shared] = readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ').map(Number);
    return (resident! - (isRoot ? 0 : shared!)) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

/** Each thread has its own. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}
