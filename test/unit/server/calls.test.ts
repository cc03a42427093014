import { MessageChannel } from 'node:worker_threads';
import { afterEach, expect, test } from 'vitest';
import { SeineError, StorageFullError } from '../../../src/core/errors.ts';
import { Problem } from '../../../src/server/api/requests/problems.ts';
import { answerCalls, RemoteCalls } from '../../../src/server/http-thread/calls.ts';

const opened: MessageChannel[] = [];

afterEach(() => {
  for (const { port1 } of opened.splice(0)) port1.close();
});

function callable<T extends object>(target: T): { calls: T; channel: MessageChannel } {
  const channel = new MessageChannel();
  opened.push(channel);
  answerCalls(channel.port1, new Map([['target', target]]));
  return { calls: new RemoteCalls(channel.port2).part<T>('target'), channel };
}

test('a method is called with its own object, and its answer comes back', async () => {
  const { calls } = callable({
    base: 3,
    async add(values: Set<number>) {
      return new Map([['sum', this.base + [...values].reduce((sum, value) => sum + value, 0)]]);
    },
  });
  expect(await calls.add(new Set([1, 2]))).toEqual(new Map([['sum', 6]]));
});

test('errors keep what they mean', async () => {
  const errors: Error[] = [
    new Problem('rate-limited', 'too many', { headers: { 'retry-after': '9' }, extensions: { left: 0 } }),
    new StorageFullError('the disk is full'),
    new SeineError('no such thing', { hint: 'make it' }),
    new TypeError('broken'),
  ];
  const { calls } = callable({ fail: async (index: number): Promise<void> => Promise.reject(errors[index]) });
  const [problem, full, seine, other] = await Promise.all(
    errors.map((_, index) => calls.fail(index).catch((error: unknown) => error)),
  );
  expect(problem).toBeInstanceOf(Problem);
  expect((problem as Problem).headers).toEqual({ 'retry-after': '9' });
  expect((problem as Problem).body).toMatchObject({ code: 'rate-limited', detail: 'too many', left: 0 });
  expect(full).toBeInstanceOf(StorageFullError);
  expect(seine).toMatchObject({ name: 'SeineError', message: 'no such thing', hint: 'make it' });
  expect(other).toMatchObject({ name: 'Error', message: 'broken' });
});

test('what cannot be copied, and what is not there, is an error of that call alone', async () => {
  const { calls } = callable({
    give: async (): Promise<unknown> => () => {},
    take: async (_: unknown) => 'taken',
  });
  await expect(calls.give()).rejects.toThrow('could not be cloned');
  await expect(calls.take(() => {})).rejects.toThrow('could not be cloned');
  const { missing } = calls as typeof calls & { missing(): Promise<void> };
  await expect(missing()).rejects.toThrow('no call target.missing');
  expect(await calls.take(1)).toBe('taken');
});

test('calls that are open when the other side ends are errors', async () => {
  const { calls, channel } = callable({ wait: () => new Promise<void>(() => {}) });
  const waiting = calls.wait();
  channel.port1.close();
  await expect(waiting).rejects.toThrow('the server ended');
});
