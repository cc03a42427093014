import { describe, expect, test } from 'vitest';
import type { FailureCode } from '../../../../src/core/failures.ts';
import type { FetchResult } from '../../../../src/ports/fetcher.ts';
import { BatchProxies } from '../../../../src/worker/request/batch-proxies.ts';

const PROXIES = ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id, url: `http://${id}:1` }));

function answer(status: number): FetchResult {
  const body = Buffer.alloc(0);
  return { kind: 'response', status, statusText: '', rawHeaders: [], wireBody: body, body, wireBytes: 0 };
}

const failure = (code: FailureCode): FetchResult => ({ kind: 'failure', code, detail: 'x', bytes: 0 });

/** Proxies of a batch that behave as `results` says, with what was tried. */
function openProxies(results: Record<string, () => FetchResult>, worker = 'one') {
  const proxies = new BatchProxies(PROXIES, worker);
  const tried: string[] = [];
  const send = (among: number[], host = 'h', perWorker = false) =>
    proxies.send({ among, ...(perWorker ? { perWorker: true } : {}) }, host, async ({ id }) => {
      tried.push(id);
      return (results[id] ?? (() => answer(200)))();
    });
  return { proxies, tried, send };
}

describe('the proxies of a batch', () => {
  test('are tried in their order, and one that fails is passed over by the next tasks', async () => {
    const { proxies, tried, send } = openProxies({ a: () => failure('proxy') });
    expect((await send([0, 1])).proxy).toBe('b');
    expect((await send([0, 1])).proxy).toBe('b');
    expect(tried).toEqual(['a', 'b', 'b']);
    expect(proxies.takeFaults()).toEqual([{ id: 'a', count: 1 }]);
    expect(proxies.takeFaults()).toEqual([]);
  });

  test('fail only when all that a task may use have failed, and then tell of each', async () => {
    const { proxies, tried, send } = openProxies({ a: () => failure('proxy'), b: () => failure('proxy') });
    const { result, proxy } = await send([0, 1]);
    expect(result).toMatchObject({ kind: 'failure', code: 'proxy' });
    expect([proxy, tried]).toEqual(['b', ['a', 'b']]);
    expect(proxies.takeFaults()).toEqual([{ id: 'a', count: 1 }]);
  });

  test('are not tried for ever: three times in a row are enough for a batch', async () => {
    const { tried, send } = openProxies({ a: () => failure('proxy') });
    for (let round = 0; round < 10; round++) await send([0]);
    expect(tried.length).toBe(3);
    expect((await send([0])).result).toMatchObject({ kind: 'failure', code: 'proxy' });
  });

  test('come back after a success', async () => {
    let works = false;
    const { tried, send } = openProxies({ a: () => (works ? answer(200) : failure('proxy')) });
    await send([0]);
    works = true;
    await send([0]);
    await send([0, 1]);
    expect(tried).toEqual(['a', 'a', 'a']);
  });

  test('that a host refuses go last there, and only there', async () => {
    const { tried, send } = openProxies({ a: () => answer(403) });
    for (let round = 0; round < 3; round++) await send([0, 1]);
    await send([0, 1], 'elsewhere');
    expect(tried).toEqual(['a', 'a', 'b', 'a']);
  });

  test('are not changed for a site that does not answer: it may have been asked', async () => {
    const { tried, send } = openProxies({ a: () => failure('headers-timeout') });
    expect((await send([0, 1])).proxy).toBe('a');
    expect(tried).toEqual(['a']);
  });

  test('belong to workers, each of which has its own', async () => {
    const owners = new Map<string, Set<string>>();
    for (let worker = 0; worker < 50; worker++) {
      const { tried, send } = openProxies({}, `worker-${worker}`);
      for (let round = 0; round < 5; round++) await send([0, 1, 2, 3, 4], `h${round}`, true);
      owners.set(`worker-${worker}`, new Set(tried));
    }
    for (const own of owners.values()) expect(own.size).toBe(1);
    expect(new Set([...owners.values()].flatMap((own) => [...own])).size).toBe(5);
  });
});
