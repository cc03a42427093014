import { Writable } from 'node:stream';
import { main } from '../../src/cli/main.ts';
import { type Finished, FLEET_KEY, seine as seineProcess } from './seine-process.ts';

/** One command line in this very process, which is much cheaper than a process of its own. */
export async function seineHere(...argv: string[]): Promise<Finished> {
  const [stdout, stderr] = [collector(), collector()];
  // Some commands replace it for the rest of their process, which has another environment than the system sees then.
  const environment = process.env;
  try {
    const code = await main(argv, { stdout: stdout.stream, stderr: stderr.stream });
    return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    process.env = environment;
  }
}

/** A real stream, as exports wait for it to take what they write. */
function collector(): { stream: NodeJS.WriteStream; text(): string } {
  const pieces: Buffer[] = [];
  const stream = new Writable({
    write(piece: Buffer, _, done) {
      pieces.push(piece);
      done();
    },
  });
  return {
    stream: Object.assign(stream, { isTTY: false }) as NodeJS.WriteStream,
    text: () => Buffer.concat(pieces).toString(),
  };
}

let before: Promise<unknown> = Promise.resolve();

/**
 * The same as `seine()` of `seine-process.ts`, without the process: with its environment, and what is added to it, in a
 * folder of choice. There is one of each, so these calls wait for each other: not for commands that are to run at the
 * same time, that read standard input without being given any, or that a test kills.
 */
export function seine(args: string[], options: Parameters<typeof seineProcess>[1] = {}): Promise<Finished> {
  // What only a process has.
  if (options.input !== undefined || options.user !== undefined || options.umask !== undefined)
    return seineProcess(args, options);
  const run = async () => {
    const own = { NO_COLOR: '1', SEINE_WORKERS: '1', SEINE_FLEET_KEY: FLEET_KEY, ...options.env };
    const [whole, cwd] = [{ ...process.env }, process.cwd()];
    Object.assign(process.env, own);
    if (options.cwd !== undefined) process.chdir(options.cwd);
    try {
      return await seineHere(...args);
    } finally {
      process.chdir(cwd);
      for (const name of Object.keys(own)) {
        if (whole[name] === undefined) delete process.env[name];
        else process.env[name] = whole[name];
      }
    }
  };
  const result = before.then(run, run);
  before = result;
  return result;
}
