import { Writable } from 'node:stream';
import { main } from '../../src/cli/main.ts';
import type { Finished } from './seine-process.ts';

/** One command line in this very process, which is much cheaper than a process of its own. */
export async function seineHere(...argv: string[]): Promise<Finished> {
  const written = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof written) => {
    const decoder = new TextDecoder();
    const writable = new Writable({
      write(chunk: Buffer, _encoding, done) {
        written[name] += decoder.decode(chunk, { stream: true });
        done();
      },
    });
    return Object.assign(writable, { isTTY: false }) as NodeJS.WriteStream;
  };
  const code = await main(argv, { stdout: stream('stdout'), stderr: stream('stderr') });
  return { code, signal: null, ...written };
}
