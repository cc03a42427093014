import { once } from 'node:events';
import { type Finished, startSeine } from '../seine-process.ts';

/** `seine hostile` as people start it. */
export interface HostileCommand {
  url: string;
  secure: Record<string, string>;
  stop(): Promise<Finished>;
}

export async function startHostileCommand(args: string[] = []): Promise<HostileCommand> {
  const started = startSeine(['hostile', '--json', ...args]);
  let text = '';
  while (!text.includes('\n')) {
    const [chunk] = await Promise.race([
      once(started.child.stdout!, 'data'),
      started.finished.then(({ stderr }) => Promise.reject(new Error(`seine hostile ended: ${stderr}`))),
    ]);
    text += chunk;
  }
  const facts = JSON.parse(text) as Pick<HostileCommand, 'url' | 'secure'>;
  return {
    ...facts,
    stop() {
      started.child.kill('SIGTERM');
      return started.finished;
    },
  };
}
