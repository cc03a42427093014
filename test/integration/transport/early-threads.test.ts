import { afterAll, beforeAll, expect, test } from 'vitest';
import { EarlyThreads, type WorkerSettings } from '../../../src/app/early-threads.ts';
import { temporaryFolder } from '../../support/fixtures.ts';
import { silent } from '../../support/fleet/lambda-setup.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());

const settings = (): WorkerSettings => ({
  dir: folder.dir,
  sync: 'normal',
  workers: 2,
  logger: silent,
  jobEnvironment: {},
});

test('threads that were started early are taken once, and work', async () => {
  const threads = new EarlyThreads(settings());
  const dispatcher = await threads.take()!;
  expect(threads.take()).toBeNull();
  expect(dispatcher.workers).toBe(2);
  // Closes nothing: whoever took them does.
  await threads.close();
  expect(dispatcher.refusal?.('http')).toBeNull();
  await dispatcher.close();
});

test('threads that nobody took are ended, also while they load', async () => {
  const threads = new EarlyThreads(settings());
  await threads.close();
  expect(threads.take()).toBeNull();
  await threads.close();
});

test('where batches go elsewhere, no thread is started', () => {
  const elsewhere = { kind: 'lambda', name: 'seine', weight: 1 } as const;
  const both = [{ kind: 'threads', weight: 1 }, elsewhere] as const;
  for (const dispatch of [[elsewhere], both])
    expect(new EarlyThreads({ ...settings(), dispatch }).take()).toBeNull();
});
