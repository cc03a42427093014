import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { realClock } from '../../support/real-clock.ts';

const DAY = 86_400_000;

test('refreshes of nine days visit a page that changes daily on all of them, and a still one ever less often', async () => {
  let day = 0;
  const visits = new Map<string, number[]>();
  const server = createServer(({ url: path = '' }, response) => {
    if (path === '/robots.txt') return void response.writeHead(404).end();
    visits.set(path, [...(visits.get(path) ?? []), day]);
    const news = path === '/news' ? `news of day ${day}` : 'a page that stays as it is';
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>${news}</h1>`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clock = { now: () => realClock.now() + day * DAY };
  try {
    const { tasks } = await crawl(
      {
        allowPrivate: true,
        sources: [`${origin}/news`, `${origin}/still`],
        revisit: { adapt: { minSeconds: 86_400, maxSeconds: 864_000 } },
      },
      {
        clock,
        again: async ({ store, job }) => {
          if (++day > 8) return false;
          const { spec, specHash, bundle, file } = job;
          await store.jobs.beginPass(job.id, { spec, specHash, bundle, file, now: Math.floor(clock.now()) });
          return true;
        },
      },
    );
    expect(visits.get('/news')).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(visits.get('/still')).toEqual([0, 1, 3, 7]);
    const intervals = tasks.map(({ url, revisitSeconds }) => [url, Math.round(revisitSeconds! / 86_400)]);
    expect(intervals).toEqual([
      [`${origin}/news`, 1],
      [`${origin}/still`, 8],
    ]);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
