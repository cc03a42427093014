import { main } from '../../src/cli/main.ts';
import type { Finished } from './seine-process.ts';

/** One command line in this very process, which is much cheaper than a process of its own. */
export async function seineHere(...argv: string[]): Promise<Finished> {
  const written = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof written) =>
    ({
      isTTY: false,
      write: (text: string | Uint8Array) => {
        written[name] += typeof text === 'string' ? text : Buffer.from(text).toString();
        return true;
      },
    }) as unknown as NodeJS.WriteStream;
  const code = await main(argv, { stdout: stream('stdout'), stderr: stream('stderr') });
  return { code, signal: null, ...written };
}
