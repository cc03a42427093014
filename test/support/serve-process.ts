import { once } from 'node:events';
import { jsonLines, type Started, startSeine } from './seine-process.ts';

export interface Served {
  url: string;
  started: Started;
  /** The lines that it prints: its address, then those about runs that have ended. */
  lines: Record<string, unknown>[];
  /** Waits until it has printed so many lines. */
  until(count: number): Promise<void>;
}

/** `seine serve` on a free port, once it is ready. */
export async function serve(dir: string, ...args: string[]): Promise<Served> {
  return serveWith({}, dir, ...args);
}

export async function serveWith(
  env: Record<string, string>,
  dir: string,
  ...args: string[]
): Promise<Served> {
  const started = startSeine(['serve', ...args, '--dir', dir, '--listen', '127.0.0.1:0', '--json'], { env });
  const lines: Record<string, unknown>[] = [];
  let text = '';
  started.child.stdout!.on('data', (chunk) => {
    text += chunk;
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    lines.splice(0, lines.length, ...jsonLines(whole));
  });
  const until = async (count: number) => {
    while (lines.length < count) {
      const [event] = await Promise.race([
        once(started.child.stdout!, 'data'),
        started.finished.then(() => ['end']),
      ]);
      if (event === 'end') throw new Error(`the server ended: ${(await started.finished).stderr}`);
    }
  };
  await until(1);
  return { url: String(lines[0]!.listening), started, lines, until };
}

export async function endServer({ started }: Served) {
  started.child.kill('SIGTERM');
  return started.finished;
}
