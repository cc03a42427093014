import { expect, test } from 'vitest';
import { HostRequests } from '../../../../src/core/slots/give-back.ts';

const crawl = {
  owner: '',
  priority: 0,
  batches: [
    { id: 1, hosts: ['a.example', 'b.example'] },
    { id: 2, hosts: ['b.example', 'c.example'] },
  ],
};
const urgent = { owner: '', priority: 10, hosts: ['b.example'] };

const toldOf = (asked: ReturnType<HostRequests['ask']>) =>
  asked.map(({ batchId, hosts }) => ({ batchId, hosts }));

test('all batches of lower priority are asked for the host, and for no other', () => {
  const asked = new HostRequests().ask(urgent, [crawl], 0);
  expect(toldOf(asked)).toEqual([
    { batchId: 1, hosts: ['b.example'] },
    { batchId: 2, hosts: ['b.example'] },
  ]);
  expect(asked[0]!.holder).toBe(crawl);
});

test.each([
  { priority: 10, owner: '', why: 'as urgent' },
  { priority: 11, owner: '', why: 'more urgent' },
  { priority: 0, owner: 'other', why: 'of another owner' },
])('batches of a job that is $why keep their hosts', ({ priority, owner }) => {
  expect(new HostRequests().ask(urgent, [{ ...crawl, priority, owner }], 0)).toEqual([]);
});

test('a batch is asked for a host once, whoever wants it, and after a second again', () => {
  const requests = new HostRequests();
  expect(requests.ask(urgent, [crawl], 0)).toHaveLength(2);
  expect(requests.ask({ ...urgent, priority: 5 }, [crawl], 999)).toEqual([]);
  const others = requests.ask({ ...urgent, hosts: ['a.example', 'b.example'] }, [crawl], 999);
  expect(toldOf(others)).toEqual([{ batchId: 1, hosts: ['a.example'] }]);
  expect(requests.ask(urgent, [crawl], 1_000)).toHaveLength(2);
});

test('batches that took a host again are asked as well, four times in a second at most', () => {
  const requests = new HostRequests();
  const next = (id: number) => ({ ...crawl, batches: [{ id, hosts: ['b.example'] }] });
  const asked = (id: number, now: number) => requests.ask(urgent, [next(id)], now).length;
  expect([asked(1, 0), asked(2, 1), asked(3, 2), asked(4, 3), asked(5, 4), asked(5, 999)]).toEqual([
    ...[1, 1, 1, 1, 0, 0],
  ]);
  expect(asked(5, 1_000)).toBe(1);
});

test('a host that nobody could give back is asked for as soon as somebody has it', () => {
  const requests = new HostRequests();
  const wanted = { ...urgent, hosts: ['d.example'] };
  expect(requests.ask(wanted, [crawl], 0)).toEqual([]);
  const later = { ...crawl, batches: [{ id: 3, hosts: ['d.example'] }] };
  expect(requests.ask(wanted, [later], 1)).toHaveLength(1);
});
