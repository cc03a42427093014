import { expect, test } from 'vitest';
import { AccessAssigner } from '../../../../src/coordinator/proxies/access-assigner.ts';
import type { JobAccess } from '../../../../src/coordinator/proxies/job-access.ts';
import type { Batch, BatchTask } from '../../../../src/core/batch/batch.ts';
import type { FetcherKind } from '../../../../src/core/escalation/escalation.ts';
import { permitFor } from '../../../../src/core/politeness/permits.ts';
import type { Fetcher } from '../../../../src/ports/fetcher.ts';
import { inOrder, prepareBrowser } from '../../../../src/worker/batch/process-batch.ts';
import { withSecretHeaders } from '../../../../src/worker/request/send.ts';
import { batchOf } from '../../../support/coordinator/progress-reports.ts';

const task = (id: number, fetcher?: FetcherKind) =>
  ({ id, url: 'https://a.example/', ...(fetcher ? { fetchMethod: { fetcher } } : {}) }) as BatchTask;

test('tasks that need no browser come first, otherwise in their order', () => {
  const tasks = [task(1, 'browser'), task(2), task(3, 'browser'), task(4, 'http'), task(5, 'api')];
  expect(inOrder(tasks).map(({ id }) => id)).toEqual([2, 4, 5, 1, 3]);
});

test('a browser starts with the batch that needs one, and what goes wrong then is nobody’s surprise', async () => {
  const asked: string[] = [];
  const browser: Fetcher = {
    fetch: () => Promise.reject(new Error('not meant')),
    prepare: async () => void asked.push('prepared'),
    close: async () => {},
  };
  prepareBrowser({ needs: 'http' } as Batch, async () => browser);
  prepareBrowser({ needs: 'browser' } as Batch, undefined);
  prepareBrowser({ needs: 'browser' } as Batch, () => Promise.reject(new Error('there is none')));
  const withSecrets = withSecretHeaders({ fetcher: browser, fetcherOf: async () => browser }, {});
  prepareBrowser({ needs: 'browser' } as Batch, withSecrets.fetcherOf);
  await expect.poll(() => asked).toEqual(['prepared']);
});

test('the saved login goes only to batches that need a browser', () => {
  const access: JobAccess = {
    pools: [],
    apiKey: null,
    headers: {},
    loginState: '{"cookies":[]}',
    secrets: [],
  };
  const ambient = { clock: { now: () => 0 }, random: { next: () => 0 } };
  const assigner = new AccessAssigner(access, ambient as ConstructorParameters<typeof AccessAssigner>[1]);
  const loginStateFor = (needs: Batch['needs']) => {
    const open = { batch: { ...batchOf(1, ['a.example'], 1), needs } };
    assigner.attachSecrets(open);
    return open.batch.loginState;
  };
  expect(loginStateFor('browser')).toBe('{"cookies":[]}');
  expect(loginStateFor('http')).toBeUndefined();
});

test('a permit for a browser leaves it time to start; without a gap there is time anyway', () => {
  const options = { now: 0, nextAt: 0, gapMs: 250, parallel: 4, count: 4, openMs: 90_000 };
  const plain = permitFor('a.example', options);
  const rendering = permitFor('a.example', { ...options, renders: true });
  expect(rendering.endAt - plain.endAt).toBeGreaterThanOrEqual(10_000);
  expect(rendering.gapMs).toBe(plain.gapMs);
  const open = { ...options, gapMs: 0 };
  expect(permitFor('a.example', { ...open, renders: true })).toEqual(permitFor('a.example', open));
});
