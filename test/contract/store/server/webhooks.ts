import { describe, expect, test } from 'vitest';
import type { WebhookEvent } from '../../../../src/core/webhooks/webhook.ts';
import type { WebhookDelivery } from '../../../../src/ports/store/webhook-store.ts';
import { change, codeOf, recordOf, T0 } from '../../../support/fixtures.ts';
import { A, type StoreSetup } from '../store-setup.ts';

/** Messages are there if, and only if, what they tell is. */
export function testWebhooks(setup: StoreSetup): void {
  describe('webhooks', () => {
    const endpoint = (
      id: string,
      events: WebhookEvent[],
      jobId: number | null = null,
      secret: string | null = 's',
    ) =>
      setup.store.webhooks.create(
        { id, owner: null, jobId, url: `https://${id}.example/`, events, metadata: { n: 1 }, createdAt: T0 },
        secret,
      );
    const told = async (id: string): Promise<WebhookDelivery[]> =>
      (await setup.store.webhooks.deliveries(id, { before: null, limit: 100 })).reverse();
    const bodies = async (id: string) => (await told(id)).map(({ body }) => JSON.parse(body));
    const lease = (now: number, more: { limit?: number; except?: string[] } = {}) =>
      setup.store.webhooks.lease({ now, until: now + 60_000, limit: 10, except: [], ...more });
    const end = (state: 'done' | 'stopped' | 'cancelled' = 'done', jobId = setup.job.id) =>
      setup.store.jobs.update(jobId, { state, reason: null, endedAt: T0 + 5 });

    test('tell the end of a job once, to those who want to know', async () => {
      await endpoint('all', ['job.completed', 'job.failed']);
      await endpoint('own', ['job.completed'], setup.job.id);
      await endpoint('other', ['job.completed'], setup.job.id + 1);
      await endpoint('failed', ['job.failed']);
      await endpoint('off', ['job.completed']);
      await setup.store.webhooks.disable('off', 'gone', T0);
      await end();
      await end();
      for (const id of ['other', 'failed', 'off']) expect(await told(id)).toEqual([]);
      const [own, ...more] = await told('own');
      expect(more).toEqual([]);
      expect(own).toMatchObject({
        state: 'pending',
        type: 'job.completed',
        jobId: setup.job.id,
        nextAt: T0 + 5,
        tries: [],
      });
      expect(own?.messageId).toMatch(/^msg_[\w-]{24}$/);
      expect(JSON.parse(own!.body)).toEqual({
        type: 'job.completed',
        timestamp: new Date(T0 + 5).toISOString(),
        data: {
          job_id: `job_${setup.job.id}`,
          job: 'test-1',
          status: 'completed',
          reason: null,
          counts: { accepted: 0, succeeded: 0, failed: 0, skipped: 0, pending: 0 },
          metadata: { n: 1 },
        },
      });
      expect((await told('all'))[0]!.messageId).not.toBe(own?.messageId);
      await setup.store.jobs.update(setup.job.id, { state: 'running', endedAt: null });
      await end('cancelled');
      expect((await bodies('all')).map(({ type, data }) => [type, data.status])).toEqual([
        ['job.completed', 'completed'],
        ['job.failed', 'cancelled'],
      ]);
    });

    test('tell owners of their own jobs alone, and when a job is finished or closed to more', async () => {
      const { jobs, webhooks } = setup.store;
      const theirs = {
        owner: 'key_1',
        jobId: null,
        url: 'https://t.example/',
        metadata: null,
        createdAt: T0,
      };
      await webhooks.create({ id: 'theirs', events: ['job.completed'], ...theirs }, 's');
      await endpoint('operator', ['job.completed']);
      const spec = { ...codeOf('own'), name: 'own', now: T0, owner: 'key_1' };
      const job = await jobs.create(spec);
      expect(await jobs.finish(job.id, T0)).toBe('done');
      expect(await jobs.finish(job.id, T0)).toBe('done');
      expect(await told('theirs')).toHaveLength(1);
      const open = await jobs.create({ ...spec, spec: { ...spec.spec, keepOpen: true } });
      expect(await jobs.finish(open.id, T0)).toBe('waiting');
      expect(await told('theirs')).toHaveLength(1);
      await jobs.closeToMore(open.id, T0);
      await jobs.closeToMore(open.id, T0);
      expect(await told('theirs')).toHaveLength(2);
      expect(await told('operator')).toEqual([]);
    });

    test('tell of pages, records and progress in the settle, and nothing of what it does not change', async () => {
      await endpoint('work', ['page.failed', 'page.completed', 'record.changed', 'batch.progress']);
      await endpoint('failed', ['page.failed'], setup.job.id);
      const urls = Array.from({ length: 10 }, (_, index) => `${A}/${index}`);
      await setup.add(...urls);
      const records = [recordOf('k1', { a: 1 })];
      const batches: number[] = [];
      await setup.visit(({ id, url }) => {
        if (url === urls[0]) return change.fetched(id, { records });
        if (url === urls[1]) return change.dead(id);
        return change.again(id, T0 + 1_000);
      });
      const seen = (await bodies('work')).map(({ type, data }) => [
        type,
        data.url ?? data.key ?? data.percent,
      ]);
      expect(seen.sort()).toEqual([
        ['batch.progress', 20],
        ['page.completed', urls[0]],
        ['page.failed', urls[1]],
        ['record.changed', 'k1'],
      ]);
      expect((await bodies('failed')).map(({ data }) => data.status)).toEqual(['failed']);
      // A late report of a batch that is closed.
      await setup.settle(batches[0] ?? 1, [change.dead(1)]);
      expect(await told('work')).toHaveLength(4);
      await setup.store.frontier.failTasksOfHost(setup.job.id, {
        host: 'a.example',
        code: 'dns',
        detail: 'no such host',
        now: T0,
        limit: 100,
      });
      const last = await bodies('failed');
      expect(last).toHaveLength(9);
      expect(last.at(-1).data).toMatchObject({ code: 'dns', detail: 'no such host' });
    });

    test('are leased by one sender, tried on a schedule, and sent again by hand under one id', async () => {
      const { webhooks } = setup.store;
      await endpoint('a', ['job.completed']);
      await endpoint('b', ['job.completed']);
      await end();
      expect(await webhooks.nextAt()).toBe(T0 + 5);
      expect(await lease(T0)).toEqual([]);
      const [first] = await lease(T0 + 5, { limit: 1 });
      const [second, ...none] = await lease(T0 + 5);
      expect(none).toEqual([]);
      expect([first!.endpointId, second!.endpointId].sort()).toEqual(['a', 'b']);
      expect(await lease(T0 + 60_004)).toEqual([]);
      // Its sender died: it is due again.
      expect(await lease(T0 + 60_005, { except: [second!.endpointId] })).toMatchObject([
        { id: first!.id, tries: 0 },
      ]);
      const tried = { at: T0, status: 500, error: null, durationMs: 7 };
      await webhooks.noteTry(first!.id, tried, { isDelivered: false, nextAt: T0 + 100_000 });
      expect(await webhooks.delivery(first!.id)).toMatchObject({
        state: 'pending',
        tries: [tried],
        nextAt: T0 + 100_000,
      });
      const [again] = await lease(T0 + 100_000, { except: [second!.endpointId] });
      expect(again).toMatchObject({ messageId: first!.messageId, tries: 1, url: first!.url });
      await webhooks.noteTry(first!.id, { ...tried, status: 200 }, { isDelivered: true, nextAt: null });
      await webhooks.noteTry(second!.id, tried, { isDelivered: false, nextAt: null });
      expect(await webhooks.delivery(second!.id)).toMatchObject({ state: 'failed', nextAt: null });
      expect(await webhooks.nextAt()).toBeNull();
      expect(await webhooks.redeliver(first!.id, T0 + 200_000)).toBe(true);
      expect(await webhooks.redeliver(99_999, T0)).toBe(false);
      const [byHand] = await lease(T0 + 200_000);
      expect(byHand).toMatchObject({ messageId: first!.messageId, tries: 0 });
      await webhooks.release(byHand!.id, T0 + 300_000);
      expect(await webhooks.nextAt()).toBe(T0 + 300_000);
      await webhooks.disable(byHand!.endpointId, 'gone', T0);
      expect(await lease(T0 + 400_000)).toEqual([]);
    });

    test('are signed by their own secret or that of their owner, and by the former one for a time', async () => {
      const { webhooks } = setup.store;
      await endpoint('own', ['job.completed']);
      await endpoint('callback', ['job.completed'], setup.job.id, null);
      expect(await webhooks.ownerSecret(null, 'first')).toEqual({ secret: 'first', former: null });
      expect(await webhooks.ownerSecret(null, 'second')).toEqual({ secret: 'first', former: null });
      expect(await webhooks.ownerSecret('key_1', 'theirs')).toEqual({ secret: 'theirs', former: null });
      await webhooks.rotateOwner(null, 'new', T0 + 1_000);
      await webhooks.rotate('own', 'new own', T0 + 1_000);
      await webhooks.rotate('callback', 'none', T0 + 1_000);
      await end();
      const secretsAt = async (now: number) =>
        Object.fromEntries((await lease(now)).map(({ endpointId, secrets }) => [endpointId, secrets]));
      expect(await secretsAt(T0 + 10)).toEqual({ own: ['new own', 's'], callback: ['new', 'first'] });
      expect(await secretsAt(T0 + 100_000)).toEqual({ own: ['new own'], callback: ['new'] });
    });

    test('belong to endpoints that can be listed, changed and removed', async () => {
      const { webhooks } = setup.store;
      await endpoint('a', ['job.completed']);
      await endpoint('a', ['job.failed']);
      await endpoint('callback', ['job.completed'], setup.job.id);
      expect((await webhooks.list({ limit: 10 })).map(({ id }) => id)).toEqual(['a']);
      expect(await webhooks.list({ owner: 'key_1', limit: 10 })).toEqual([]);
      await webhooks.update('a', { url: 'https://b.example/', events: ['page.failed'], metadata: null });
      expect(await webhooks.get('a')).toEqual({
        id: 'a',
        owner: null,
        jobId: null,
        url: 'https://b.example/',
        events: ['page.failed'],
        metadata: null,
        createdAt: T0,
        disabledAt: null,
        disabledReason: null,
      });
      await webhooks.tell({ type: 'page.failed', data: { any: 1 } }, { now: T0 });
      await webhooks.tell({ type: 'page.failed', data: { any: 1 } }, { owner: 'key_1', now: T0 });
      expect(await told('a')).toHaveLength(1);
      await webhooks.remove('a');
      expect(await webhooks.get('a')).toBeNull();
      expect(await told('a')).toEqual([]);
      await end();
      const [{ id } = { id: 0 }] = await lease(T0 + 10);
      await webhooks.noteTry(
        id,
        { at: T0, status: 200, error: null, durationMs: 1 },
        { isDelivered: true, nextAt: null },
      );
      expect(await webhooks.forget(T0, 10)).toBe(0);
      expect(await webhooks.forget(T0 + 100, 10)).toBe(1);
      expect(await webhooks.get('callback')).toBeNull();
    });
  });
}
