import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import type { HostFacts } from '../../../src/ports/store.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { SkippingClock } from '../../support/coordinator/skipping-clock.ts';
import { collect } from '../../support/fixtures.ts';

/** A host that answers some pages, then refuses everything for a while; what it refuses is counted. */

const servers: Server[] = [];
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

interface Host {
  origin: string;
  answered: string[];
  refused: string[];
}

async function openHost(refuses: (path: string, host: Host) => boolean): Promise<Host> {
  const host: Host = { origin: '', answered: [], refused: [] };
  const server = createServer(({ url: path = '' }, response) => {
    if (path === '/robots.txt') return void response.writeHead(404).end();
    const isRefused = refuses(path, host);
    (isRefused ? host.refused : host.answered).push(path);
    if (isRefused) return void response.writeHead(403).end();
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end(`<title>${path}</title><p>words of ${path}</p>`);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  host.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return host;
}

const politeness = { rate: 20, parallel: 4 };
const MINUTE = 60_000;

/** Begins after 19 pages, and lasts for a time of the clock, which runs by leaps meanwhile. */
async function openBanningHost(banMs: number, stepMs: number, pages = 40) {
  const clock = new SkippingClock(stepMs, () => bannedAt !== null && clock.now() < bannedAt + banMs * 4);
  let bannedAt: number | null = null;
  const host = await openHost((_, { answered }) => {
    if (bannedAt === null && answered.length === 19) bannedAt = clock.now();
    return bannedAt !== null && clock.now() < bannedAt + banMs;
  });
  return { host, clock, sources: Array.from({ length: pages }, (_, page) => `${host.origin}/${page}`) };
}

/** Each report comes in two parts, of which the first, with all outcomes but the last, comes after the second. */
function overtaking(dispatcher: Dispatcher): Dispatcher {
  return {
    ...dispatcher,
    get slots() {
      return dispatcher.slots;
    },
    async dispatch(batch, onPart) {
      const delivery = await dispatcher.dispatch(batch, onPart);
      if (delivery.kind !== 'report') return delivery;
      const { report } = delivery;
      const second = { ...report, part: report.part + 1, final: false, outcomes: report.outcomes.slice(-1) };
      const unfinished = report.permits.map((use) => ({ ...use, sent: 0, finished: false }));
      const first = { ...report, final: false, outcomes: report.outcomes.slice(0, -1), permits: unfinished };
      onPart(second);
      onPart({ ...first, robots: [], archive: null });
      const nothing = { outcomes: [], robots: [], permits: unfinished, archive: null };
      return { kind: 'report', report: { ...report, ...nothing, part: report.part + 2 } };
    },
  };
}

// Each waits for its own clock and needs no core for it.
describe.concurrent('a host that refuses', () => {
  test.each([
    ['20 seconds', 20_000, 1_000, 10],
    ['a minute', MINUTE, 1_000, 10],
    ['30 minutes', 30 * MINUTE, 10_000, 16],
  ])(
    'a ban of %s is waited out: few requests go into it, none is a dead letter, all is fetched after it',
    async (_, banMs, stepMs, most) => {
      const { host, clock, sources } = await openBanningHost(banMs, stepMs);
      const messages: string[] = [];
      const note = (message: string) => void messages.push(message);
      const { state, counters } = await crawl(
        { sources, politeness, allowPrivate: true },
        { clock, through: clock.watch, logger: { info: note, warn: note, error: note } },
      );
      clock.stop();
      expect([state, counters.done, counters.dead]).toEqual(['done', 40, 0]);
      expect(host.refused.length).toBeLessThanOrEqual(most);
      expect(messages.filter((message) => message.includes('refuses every page'))).toHaveLength(1);
      expect(messages.filter((message) => message.endsWith('answers again'))).toHaveLength(1);
    },
  );

  test('without a rate, few requests go into a ban that begins after some pages: parallel requests grow with answers', async () => {
    const { host, clock, sources } = await openBanningHost(MINUTE, 1_000, 150);
    const { state, counters } = await crawl(
      { sources, politeness: { rate: 'max', parallel: 16 }, allowPrivate: true },
      { clock, through: clock.watch },
    );
    clock.stop();
    expect([state, counters.done, counters.dead]).toEqual(['done', 150, 0]);
    // Nine as a rule; a machine that stands still for two seconds lets one more request begin.
    expect(host.refused.length).toBeLessThanOrEqual(12);
  });

  test('pages that were refused wait also when their report is overtaken by the one with which their permit came back', async () => {
    const { clock, sources } = await openBanningHost(MINUTE, 1_000);
    const { state, counters } = await crawl(
      { sources, politeness, allowPrivate: true },
      { clock, through: (inline) => overtaking(clock.watch(inline)) },
    );
    clock.stop();
    expect([state, counters.done, counters.dead]).toEqual(['done', 40, 0]);
  });

  test('after a day of a ban the job stops with the reason, and nothing is lost', async () => {
    const { host, clock, sources } = await openBanningHost(1e12, 3 * MINUTE);
    let reason: string | null = null;
    let facts: HostFacts[] = [];
    const { state, counters } = await crawl(
      { sources, politeness, allowPrivate: true },
      {
        clock,
        through: clock.watch,
        inspect: async ({ store, job }) => {
          reason = (await store.jobs.find(job.name))?.reason ?? null;
          facts = await collect(store.hosts.list(job.id));
        },
      },
    );
    clock.stop();
    expect([state, counters.done, counters.dead, counters.pending]).toEqual(['stopped', 19, 0, 21]);
    expect(reason).toMatch(/refused every page for 24 hours/);
    expect(host.refused.length).toBeLessThanOrEqual(45);
    // What another coordinator, or a later run, finds in the store.
    expect(facts[0]!.ban).toMatchObject({ since: expect.any(Number), known: { url: expect.any(String) } });
  });

  test('forbidden pages among others, and many in a row, are dead letters without a wait', async () => {
    const host = await openHost((path) => path.startsWith('/private') || path === '/7');
    const pages = (name: string, count: number) =>
      Array.from({ length: count }, (_, page) => `${host.origin}/${name}${page}`);
    const sources = [...pages('', 20), ...pages('private/', 30), ...pages('more/', 10)];
    const { state, counters, tasks } = await crawl({ sources, politeness, allowPrivate: true });
    expect([state, counters.done, counters.dead]).toEqual(['done', 29, 31]);
    expect(new Set(tasks.filter((task) => task.state === 'dead').map((task) => task.failureCode))).toEqual(
      new Set(['forbidden']),
    );
  });

  test('a host that never answered is not waited for', async () => {
    const host = await openHost(() => true);
    const sources = Array.from({ length: 12 }, (_, page) => `${host.origin}/${page}`);
    const { state, counters } = await crawl({ sources, politeness, allowPrivate: true });
    expect([state, counters.dead, host.refused.length]).toEqual(['done', 12, 12]);
  });
});
