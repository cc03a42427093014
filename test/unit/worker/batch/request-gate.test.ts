import { describe, expect, test } from 'vitest';
import { RequestGate } from '../../../../src/worker/batch/request-gate.ts';

const SAMPLE_MS = 50;
const NEVER = new AbortController().signal;

/** A worker whose time and load are set by hand. */
function openGate() {
  let now = 0;
  let busy = 0;
  let timers: (() => void)[] = [];
  const clock = {
    now: () => now,
    after: (_: number, run: () => void) => {
      timers.push(run);
      return () => {
        timers = timers.filter((timer) => timer !== run);
      };
    },
  };
  const gate = new RequestGate({ clock, busyMs: () => busy });
  const admitted: string[] = [];
  return {
    gate,
    admitted,
    /** A request that leaves a mark when it is let in. */
    enter(name: string, priority = 0, signal = NEVER) {
      const entry = gate.enter(priority, signal);
      if (entry) void entry.then(() => admitted.push(name));
      else admitted.push(name);
    },
    pass(share: number) {
      now += SAMPLE_MS;
      busy += SAMPLE_MS * share;
      const due = timers;
      timers = [];
      for (const run of due) run();
    },
    settled: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

function fillUp({ gate, enter }: ReturnType<typeof openGate>, name = 'early'): void {
  while (gate.underWay < gate.limit) enter(name);
}

describe('the gate of a worker', () => {
  test('a worker that never rests has ever fewer requests under way, down to a few', () => {
    const worker = openGate();
    const { gate, pass } = worker;
    fillUp(worker);
    const before = gate.limit;
    for (let count = 0; count < 100; count++) {
      pass(1);
      gate.leave();
      fillUp(worker);
    }
    expect(gate.limit).toBeLessThan(before / 2);
    expect(gate.limit).toBeGreaterThanOrEqual(48);
  });

  test('a worker that rests while requests wait gets more, though none of its answers come', async () => {
    const worker = openGate();
    const { gate, enter, pass, admitted, settled } = worker;
    fillUp(worker);
    const before = gate.limit;
    for (let count = 0; count < 1_000; count++) enter('late');
    for (let count = 0; count < 20; count++) pass(0.2);
    await settled();
    expect(gate.limit).toBeGreaterThan(before * 5);
    expect(admitted.filter((name) => name === 'late').length).toBe(Math.min(1_000, gate.underWay - before));
  });

  test('without anybody who waits the limit stays', () => {
    const { gate, pass, enter } = openGate();
    const before = gate.limit;
    for (let count = 0; count < 20; count++) {
      pass(0.2);
      enter('one');
      gate.leave();
    }
    expect(gate.limit).toBe(before);
  });

  test('an urgent job comes before what waited longer, and does not shut it out', async () => {
    const worker = openGate();
    const { gate, enter, admitted, settled } = worker;
    fillUp(worker);
    for (let count = 0; count < 300; count++) enter('plain', 0);
    for (let count = 0; count < 300; count++) enter('urgent', 5);
    admitted.length = 0;
    for (let count = 0; count < 99; count++) gate.leave();
    await settled();
    const urgent = admitted.filter((name) => name === 'urgent').length;
    expect(admitted.length).toBe(99);
    // Five steps of priority are a share of 32 to 1.
    expect(urgent).toBeGreaterThanOrEqual(95);
    expect(urgent).toBeLessThan(99);
  });

  test('who comes late does not catch up with what others had before', async () => {
    const worker = openGate();
    const { gate, enter, admitted, settled } = worker;
    fillUp(worker);
    for (let count = 0; count < 400; count++) enter('first', 0);
    for (let count = 0; count < 200; count++) gate.leave();
    for (let count = 0; count < 200; count++) enter('second', 1);
    await settled();
    admitted.length = 0;
    for (let count = 0; count < 90; count++) gate.leave();
    await settled();
    const second = admitted.filter((name) => name === 'second').length;
    expect(second).toBeGreaterThanOrEqual(58);
    expect(second).toBeLessThanOrEqual(62);
  });

  test('a batch whose time is over waits no longer', async () => {
    const worker = openGate();
    const { gate, enter, admitted, settled } = worker;
    fillUp(worker);
    const over = new AbortController();
    enter('over', 0, over.signal);
    enter('next', 0);
    over.abort();
    await settled();
    expect(admitted).toContain('over');
    expect(admitted).not.toContain('next');
    gate.leave();
    gate.leave();
    await settled();
    expect(admitted).toContain('next');
  });
});
