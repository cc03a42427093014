import { expect, test } from 'vitest';
import { OutageWatch } from '../../../../src/coordinator/outage/outage-watch.ts';
import type { Batch, Report } from '../../../../src/core/batch/batch.ts';
import type { RobotsOutcome } from '../../../../src/core/batch/outcome.ts';

const logger = { info: () => {}, warn: () => {} };

/** What the robots.txt of each host came to. */
function told(watch: OutageWatch, answers: Record<string, 'answers' | 'unreachable'>): void {
  const hosts = Object.keys(answers);
  const batch = {
    permits: hosts.map((host) => ({ host })),
    robots: hosts.map((host, permit) => ({
      permit,
      origin: `http://${host}`,
      url: `http://${host}/robots.txt`,
    })),
  } as unknown as Batch;
  const robots = hosts.map((host): RobotsOutcome => {
    const isAnswer = answers[host] === 'answers';
    return {
      ...{ kind: 'failed', origin: `http://${host}`, code: isAnswer ? 'server-error' : 'connect' },
      detail: isAnswer ? 'status 500' : 'the connection failed (ENETUNREACH)',
      trace: { startedAt: 0, httpStatus: isAnswer ? 500 : null },
    } as RobotsOutcome;
  });
  const report = { outcomes: [], robots, permits: [] } as unknown as Report;
  watch.judge({ batch, tasks: new Map() }, report);
}

test('the host that is asked whether the network is there has not failed yet, where there is one', () => {
  const watch = new OutageWatch({ clock: { now: () => 0, after: () => () => {} }, logger });
  told(watch, { 'a.example': 'answers', 'b.example': 'answers' });
  expect(watch.reference).toBeNull();
  told(watch, { 'a.example': 'unreachable' });
  expect(watch.reference).toEqual({ host: 'b.example', url: 'http://b.example/robots.txt' });
});

test('when all of them have failed, they are asked again: they may have no tasks left that would', () => {
  const watch = new OutageWatch({ clock: { now: () => 0, after: () => () => {} }, logger });
  told(watch, { 'a.example': 'answers' });
  told(watch, { 'a.example': 'unreachable', 'b.example': 'unreachable' });
  expect(watch.reference).toEqual({ host: 'a.example', url: 'http://a.example/robots.txt' });
  told(watch, { 'a.example': 'answers' });
  expect(watch.reference).toBeNull();
});
