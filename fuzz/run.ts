import { randomInt } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { readOptions } from '../scripts/read-options.ts';
import { keepFixture } from './fixtures.ts';
import { kindOf } from './judge.ts';
import { minimise } from './minimise.ts';
import { TARGETS } from './targets.ts';
import { type FromThread, INPUT_BYTES_MAX, type ThreadSetup, type ToThread } from './thread-messages.ts';

/** Without an answer for so long, an input never ends. The machine may be busy. */
const STUCK_MS = 30_000;
/** For what a target has open. */
const CLOSE_MS = 10_000;
const HEAP_MB = 512;
/** Of one kind: more of the same tell nothing new. */
const FOUND_OF_KIND_MAX = 1;
const MINIMISE_TRIES = 3_000;

const { values, words } = readOptions({
  start: 'npm run fuzz --',
  about: `Tries random inputs on one target, or on all one after the other. What is found is made small and kept in
test/fixtures/fuzz/, where \`npm test\` tries it again. The exit code is 1 then.`,
  words: { shown: 'target', known: [...Object.keys(TARGETS), 'all'], max: 1 },
  options: {
    minutes: { number: 10, does: 'how long for each target' },
    seed: { number: null, shown: 'a new one each time', does: 'repeats a run' },
  },
});
const { minutes } = values;
const seed = values.seed ?? randomInt(2 ** 31 - 1);
const names = words[0] === 'all' ? Object.keys(TARGETS) : words;
if (names.length === 0) {
  process.stderr.write(`name a target: ${Object.keys(TARGETS).join(', ')}, all\n`);
  process.exit(2);
}

async function fuzz(name: string): Promise<number> {
  const say = (text: string) => process.stdout.write(`${name}: ${text}\n`);
  say(`seed ${seed}, ${minutes} minutes`);
  const startedAt = Date.now();
  const endsAt = startedAt + minutes * 60_000;
  const kinds = new Map<string, number>();
  let cases = 0;
  let kept = 0;
  let saidAt = startedAt;
  let thread = await Thread.start(name, 0);
  let ran = 0;
  while (Date.now() < endsAt) {
    const result = await thread.run(endsAt, (done) => {
      if (Date.now() - saidAt < 10_000) return;
      saidAt = Date.now();
      const total = cases + done;
      const rate = Math.round(total / ((saidAt - startedAt) / 1_000));
      say(
        `${total} cases, ${rate}/s, ${kept} found, ${Math.max(0, Math.round((endsAt - saidAt) / 1_000))} s left`,
      );
    });
    ran += thread.tried;
    cases = ran;
    if (result === null) break;
    const kind = kindOf(result.verdict);
    const before = kinds.get(kind) ?? 0;
    kinds.set(kind, before + 1);
    await thread.stop();
    if (before < FOUND_OF_KIND_MAX) {
      say(`found: ${result.verdict}`);
      const small = await minimiseIn(name, result.input, kind);
      kept++;
      say(`kept ${small.length} of ${result.input.length} bytes in ${keepFixture(name, small)}`);
      say(JSON.stringify(small.toString('utf8').slice(0, 400)));
    }
    thread = await Thread.start(name, ran);
  }
  await thread.stop();
  const seconds = Math.max(1, (Date.now() - startedAt) / 1_000);
  say(`done: ${cases} cases, ${Math.round(cases / seconds)}/s, ${kept} found`);
  for (const [kind, count] of kinds) say(`${count} × ${kind}`);
  return kept;
}

async function minimiseIn(name: string, input: Buffer, kind: string): Promise<Buffer> {
  let thread = await Thread.start(name, 0);
  const isBad = async (shorter: Buffer) => {
    const verdict = await thread.judge(shorter);
    if (thread.isLost) thread = await Thread.start(name, 0);
    return verdict !== null && kindOf(verdict) === kind;
  };
  // An input that kills the thread costs seconds each time.
  const isSlow = kind.startsWith('it ');
  const small = await minimise(input, isBad, isSlow ? 60 : MINIMISE_TRIES);
  await thread.stop();
  return small;
}

interface Found {
  input: Buffer;
  verdict: string;
}

/** A thread that tries inputs, watched from here. */
class Thread {
  readonly #worker: Worker;
  readonly #counters: Int32Array;
  readonly #input: Buffer;
  #onMessage: ((message: FromThread) => void) | null = null;
  #onLost: ((verdict: string) => void) | null = null;
  isLost = false;

  static async start(target: string, from: number): Promise<Thread> {
    const thread = new Thread(target, from);
    await new Promise<void>((resolve, reject) => {
      thread.#onMessage = () => resolve();
      thread.#onLost = (verdict) => reject(new Error(verdict));
    });
    return thread;
  }

  private constructor(target: string, from: number) {
    const counters = new SharedArrayBuffer(8);
    const input = new SharedArrayBuffer(INPUT_BYTES_MAX);
    this.#counters = new Int32Array(counters);
    this.#input = Buffer.from(input);
    const setup: ThreadSetup = { target, seed, from, counters, input };
    this.#worker = new Worker(new URL('./thread.ts', import.meta.url), {
      workerData: setup,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    });
    this.#worker.on('message', (message: FromThread) => this.#onMessage?.(message));
    this.#worker.on('error', (error) => {
      this.isLost = true;
      this.#onLost?.(`it ends the thread: ${error.message}`);
    });
    this.#worker.on('exit', () => {
      this.isLost = true;
    });
  }

  get tried(): number {
    return Atomics.load(this.#counters, 0);
  }

  /** The first input that is not handled well, or null when the time is over. */
  run(endsAt: number, onTick: (tried: number) => void): Promise<Found | null> {
    return this.#ask<Found | null>({ kind: 'run' }, (message, verdict) => {
      if (message?.kind === 'found') return { input: Buffer.from(message.input), verdict: message.verdict };
      if (verdict !== null) return { input: this.#current(), verdict };
      onTick(this.tried);
      return Date.now() >= endsAt ? null : undefined;
    });
  }

  judge(input: Buffer): Promise<string | null> {
    return this.#ask<string | null>({ kind: 'judge', input }, (message, verdict) =>
      message?.kind === 'judged' ? message.verdict : (verdict ?? undefined),
    );
  }

  async stop(): Promise<void> {
    if (!this.isLost)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, CLOSE_MS);
        this.#onMessage = ({ kind }) => {
          if (kind !== 'closed') return;
          clearTimeout(timer);
          resolve();
        };
        this.#onLost = () => resolve();
        this.#worker.postMessage({ kind: 'close' } satisfies ToThread);
      });
    this.#onMessage = this.#onLost = null;
    await this.#worker.terminate();
  }

  /** `take` is called with each message, with what became of the thread, and every now and then with neither. */
  #ask<T>(
    question: ToThread,
    take: (message: FromThread | null, verdict: string | null) => T | undefined,
  ): Promise<T> {
    return new Promise((resolve) => {
      let [seen, seenAt] = [-1, Date.now()];
      const settle = (message: FromThread | null, verdict: string | null) => {
        const result = take(message, verdict);
        if (result === undefined) return;
        clearInterval(watch);
        this.#onMessage = this.#onLost = null;
        resolve(result);
      };
      const watch = setInterval(() => {
        if (this.tried !== seen) [seen, seenAt] = [this.tried, Date.now()];
        const isStuck = Date.now() - seenAt > STUCK_MS;
        if (isStuck) {
          this.isLost = true;
          void this.#worker.terminate();
        }
        settle(null, isStuck ? 'it never ends' : null);
      }, 250);
      this.#onMessage = (message) => settle(message, null);
      this.#onLost = (verdict) => settle(null, verdict);
      this.#worker.postMessage(question);
    });
  }

  #current(): Buffer {
    return Buffer.from(this.#input.subarray(0, Atomics.load(this.#counters, 1)));
  }
}

let found = 0;
for (const name of names) found += await fuzz(name);
process.exitCode = found === 0 ? 0 : 1;
