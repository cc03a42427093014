import { parentPort, workerData } from 'node:worker_threads';
import { judge } from './judge.ts';
import { Random, seedOfCase } from './random.ts';
import { TARGETS } from './targets.ts';
import { type FromThread, INPUT_BYTES_MAX, type ThreadSetup, type ToThread } from './thread-messages.ts';

/** Tries inputs in a thread of its own: one that never ends, or fills the heap, takes only this thread down. */

const setup = workerData as ThreadSetup;
const counters = new Int32Array(setup.counters);
const shared = Buffer.from(setup.input);
const port = parentPort!;
const post = (message: FromThread) => port.postMessage(message);

const target = await TARGETS[setup.target]!();

/** Where the command finds it, whatever becomes of this thread. */
function show(input: Buffer): void {
  const length = Math.min(input.length, INPUT_BYTES_MAX);
  shared.set(input.subarray(0, length));
  Atomics.store(counters, 1, length);
  Atomics.add(counters, 0, 1);
}

let isClosing = false;
let atWork: Promise<void> = Promise.resolve();

async function run(): Promise<void> {
  for (let index = setup.from; !isClosing; index++) {
    const input = target.generate(new Random(seedOfCase(setup.seed, index)));
    show(input);
    const verdict = await judge(target, input);
    if (verdict !== null) {
      post({ kind: 'found', index, input, verdict });
      return;
    }
    // Lets messages through, and timers of what is being tried.
    if (index % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Databases do not take it well when a thread ends under them. */
async function close(): Promise<void> {
  isClosing = true;
  await atWork;
  await target.close?.();
  post({ kind: 'closed' });
}

port.on('message', (message: ToThread) => {
  if (message.kind === 'run') {
    atWork = run();
  } else if (message.kind === 'close') {
    void close();
  } else {
    const input = Buffer.from(message.input);
    show(input);
    void judge(target, input).then((verdict) => post({ kind: 'judged', verdict }));
  }
});
process.on('unhandledRejection', (error) => {
  throw error;
});
post({ kind: 'ready' });
