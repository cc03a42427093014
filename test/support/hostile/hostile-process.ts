import { fork } from 'node:child_process';
import { type HostileOptions, startHostileWeb } from '../../../src/sites/hostile/hostile-web.ts';

/** The hostile web in a process of its own, so that it takes no time from who visits it. */
export interface HostileProcess {
  url: string;
  authority: string;
  secure: Record<string, string>;
  /** Requests so far, by path. */
  count(path: string): Promise<number>;
  close(): Promise<void>;
}

async function serve(options: HostileOptions): Promise<void> {
  const web = await startHostileWeb(options);
  process.on('message', ({ id, path }: { id: number; path: string }) =>
    process.send!({ id, count: web.count(path) }),
  );
  process.on('disconnect', async () => {
    await web.close();
    process.exit(0);
  });
  process.send!({ url: web.url, authority: web.authority, secure: web.secure });
}

if (process.send && process.argv[2] === 'hostile-web') await serve(JSON.parse(process.argv[3]!));

export async function startHostileProcess(options: HostileOptions = {}): Promise<HostileProcess> {
  const child = fork(import.meta.filename, ['hostile-web', JSON.stringify(options)]);
  const facts = await new Promise<Pick<HostileProcess, 'url' | 'authority' | 'secure'>>((resolve, reject) => {
    child.once('message', (message) => resolve(message as never));
    child.once('exit', (code) => reject(new Error(`the hostile web ended with code ${code}`)));
  });
  const waiting = new Map<number, (count: number) => void>();
  child.on('message', ({ id, count }: { id: number; count: number }) => waiting.get(id)?.(count));
  let lastId = 0;
  return {
    ...facts,
    count: (path) =>
      new Promise((resolve) => {
        const id = ++lastId;
        waiting.set(id, resolve);
        child.send({ id, path });
      }),
    async close() {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.disconnect();
      await exited;
    },
  };
}
