import { describe, expect, test } from 'vitest';
import {
  type AlertFacts,
  AlertJudge,
  type AlertMinute,
  type JobFacts,
  parseThresholds,
  THRESHOLDS_DEFAULT,
  thresholdsText,
} from '../../../../src/core/alerts/alerts.ts';

const START = 1_700_000_040_000;

/** A server on virtual time: a look each 15 seconds, and what happens in each minute is as it is said. */
class VirtualServer {
  readonly judge: AlertJudge;
  readonly changes: string[] = [];
  now = START;
  job: Omit<JobFacts, 'minutes'> | null = { job: 'shop', pending: 10, drops: [], budget: null };
  /** Each minute. */
  happens = { succeeded: 100, failed: 0, failures: 0 };
  slots: number | null = 8;
  diskFreeBytes: number | null = 100e9;
  #minutes: AlertMinute[] = [];

  constructor(judge = new AlertJudge(THRESHOLDS_DEFAULT)) {
    this.judge = judge;
  }

  change(job: Partial<JobFacts>): void {
    this.job = { ...this.job!, ...job };
  }

  pass(minutes: number, each: () => void = () => {}): string[] {
    const seen = this.changes.length;
    for (let minute = 0; minute < minutes; minute++) {
      each();
      this.#minutes = [...this.#minutes.slice(-60), { at: this.now, ...this.happens }];
      for (let look = 0; look < 4; look++) {
        for (const { kind, subject, state } of this.judge.look(this.#facts()))
          this.changes.push(`${kind} ${subject} ${state}`.replace('  ', ' '));
        this.now += 15_000;
      }
    }
    return this.changes.slice(seen);
  }

  #facts(): AlertFacts {
    const { now, slots, diskFreeBytes, job } = this;
    return { now, slots, diskFreeBytes, jobs: job ? [{ ...job, minutes: this.#minutes }] : [] };
  }
}

describe('each alert fires and is resolved, once', () => {
  const cases: Record<
    string,
    { bad: (server: VirtualServer) => unknown; good: (server: VirtualServer) => unknown }
  > = {
    'backlog-grows shop': {
      bad: (server) => server.change({ pending: server.job!.pending + 5 }),
      good: (server) => server.change({ pending: server.job!.pending - 1 }),
    },
    'success-low shop': {
      bad: (server) => Object.assign(server.happens, { succeeded: 90, failed: 6, failures: 0 }),
      good: (server) => Object.assign(server.happens, { succeeded: 100, failed: 0, failures: 0 }),
    },
    'workers-halved': {
      bad: (server) => Object.assign(server, { slots: 3 }),
      good: (server) => Object.assign(server, { slots: 8 }),
    },
    'errors-rise shop': {
      bad: (server) => Object.assign(server.happens, { succeeded: 100, failed: 0, failures: 50 }),
      good: (server) => Object.assign(server.happens, { succeeded: 100, failed: 0, failures: 0 }),
    },
    'dead-letters-grow shop': {
      bad: (server) => Object.assign(server.happens, { succeeded: 1_000, failed: 20, failures: 0 }),
      good: (server) => Object.assign(server.happens, { succeeded: 1_000, failed: 0, failures: 0 }),
    },
    'fill-rate-drops shop': {
      bad: (server) => server.change({ drops: ['price'] }),
      good: (server) => server.change({ drops: [] }),
    },
    'over-budget shop': {
      bad: (server) => server.change({ budget: { spent: 3, expected: 12, max: 10 } }),
      good: (server) => server.change({ budget: { spent: 3, expected: 9, max: 10 } }),
    },
    'disk-low': {
      bad: (server) => Object.assign(server, { diskFreeBytes: 1e9 }),
      good: (server) => Object.assign(server, { diskFreeBytes: 50e9 }),
    },
  };
  test.each(Object.entries(cases))('%s', (name, { bad, good }) => {
    const server = new VirtualServer();
    expect(server.pass(30)).toEqual([]);
    expect(server.pass(20, () => bad(server))).toEqual([`${name} firing`]);
    expect(server.pass(30, () => good(server))).toEqual([`${name} resolved`]);
    expect(server.pass(90, () => good(server))).toEqual([]);
  });
});

test('a number near its threshold does not make an alert come and go', () => {
  const server = new VirtualServer();
  let minute = 0;
  // Around 95 %: what is below 95 fires, and only what is above 96 would resolve it.
  const near = () => {
    const isLow = Math.floor(minute++ / 12) % 2 === 0;
    server.happens = { succeeded: isLow ? 948 : 955, failed: isLow ? 52 : 45, failures: 0 };
  };
  const changes = server.pass(60, near).filter((change) => change.startsWith('success-low'));
  expect(changes).toEqual(['success-low shop firing']);
  server.diskFreeBytes = 1.9e9;
  expect(server.pass(5, near)).toEqual(['disk-low firing']);
  server.diskFreeBytes = 2.1e9;
  expect(server.pass(30, near)).toEqual([]);
});

test('a short trouble of workers is not told, and no alert is told of a server without jobs', () => {
  const server = new VirtualServer();
  server.pass(10);
  server.slots = 1;
  expect(server.pass(1)).toEqual([]);
  server.slots = 8;
  expect(server.pass(10)).toEqual([]);
  server.slots = null;
  server.job = null;
  expect(server.pass(10)).toEqual([]);
});

test('a job that ends takes its alerts with it, and a server that begins again goes on with those that fired', () => {
  const server = new VirtualServer();
  server.pass(5);
  server.job = { ...server.job!, drops: ['price'] };
  expect(server.pass(5)).toEqual(['fill-rate-drops shop firing']);
  const again = new VirtualServer(
    new AlertJudge(THRESHOLDS_DEFAULT, [{ kind: 'fill-rate-drops', subject: 'shop' }]),
  );
  again.job = server.job;
  expect(again.pass(5)).toEqual([]);
  again.job = null;
  expect(again.pass(1)).toEqual(['fill-rate-drops shop resolved']);
});

test('thresholds are written as a list, and those that are not named stay', () => {
  expect(parseThresholds('success=0.9, diskGb=10')).toEqual({
    ...THRESHOLDS_DEFAULT,
    success: 0.9,
    diskGb: 10,
  });
  expect(parseThresholds(thresholdsText(THRESHOLDS_DEFAULT))).toEqual(THRESHOLDS_DEFAULT);
  for (const wrong of ['', 'success', 'success=', 'success=-1', 'success=0', 'constructor=1', 'speed=3'])
    expect([wrong, parseThresholds(wrong)]).toEqual([wrong, null]);
});
