import { fork } from 'node:child_process';
import { startWorker } from './bullmq-fleet.ts';

/** A worker in a process of its own, for tests that kill it. */
interface WorkerProcess {
  name: string;
  kill9(): Promise<void>;
}

if (process.send && process.argv[2] === 'worker') {
  const [, , , url, blobs, name] = process.argv;
  await startWorker(url!, blobs!, { name: name! });
  process.on('disconnect', () => process.exit(0));
  process.send('ready');
}

export async function startWorkerProcess(url: string, blobs: string, name: string): Promise<WorkerProcess> {
  const child = fork(import.meta.filename, ['worker', url, blobs, name], { execArgv: [] });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve());
    child.once('exit', (code) => reject(new Error(`the worker ended with code ${code}`)));
  });
  return {
    name,
    async kill9() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
