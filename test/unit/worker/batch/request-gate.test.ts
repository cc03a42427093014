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
  const turns: (() => void)[] = [];
  const gate = new RequestGate({ clock, busyMs: () => busy, afterArrivals: (run) => turns.push(run) });
  const admitted: string[] = [];
  const underWay: number[] = [];
  const processed: string[] = [];
  return {
    gate,
    admitted,
    /** A request that leaves a mark when it is let in. */
    enter(name: string, priority = 0, signal = NEVER) {
      const entry = gate.enter(priority, signal);
      const enters = () => {
        admitted.push(name);
        underWay.push(priority);
      };
      if (entry) void entry.then(enters);
      else enters();
    },
    /** Those that were let in first are answered first. */
    async leave(count: number) {
      for (let left = 0; left < count; left++) {
        gate.leave(underWay.shift()!);
        await Promise.resolve();
      }
      await new Promise((resolve) => setImmediate(resolve));
    },
    /** Time passes in which the worker does nothing. */
    wait(ms: number) {
      now += ms;
      const due = timers;
      timers = [];
      for (const run of due) run();
    },
    endHeadStart() {
      now += 250;
      for (const run of timers.splice(0)) run();
    },
    processed,
    /** An answer that leaves a mark when it may be processed. */
    answer(name: string, priority: number) {
      const turn = gate.answered(priority);
      if (turn) void turn.then(() => processed.push(name));
      else processed.push(name);
    },
    /** All that has arrived was taken. */
    async turn() {
      for (const run of turns.splice(0)) run();
      await Promise.resolve();
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
      gate.leave(0);
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
      gate.leave(0);
    }
    expect(gate.limit).toBe(before);
  });

  test('an urgent job waits for none of a plain one, and does not shut it out', async () => {
    const worker = openGate();
    const { gate, enter, admitted, leave } = worker;
    gate.arrive(0);
    fillUp(worker);
    for (let count = 0; count < 1_000; count++) enter('plain', 0);
    admitted.length = 0;
    gate.arrive(5);
    worker.endHeadStart();
    for (let count = 0; count < 1_000; count++) enter('urgent', 5);
    // Five steps of priority are a share of 32 to 1.
    expect(admitted.length).toBe(Math.floor((gate.limit * 32) / 33));
    await leave(gate.limit);
    admitted.length = 0;
    await leave(660);
    const plain = admitted.filter((name) => name === 'plain').length;
    expect(admitted.length).toBeGreaterThan(600);
    expect(plain).toBeGreaterThanOrEqual(10);
    expect(plain).toBeLessThanOrEqual(30);
  });

  test('two jobs get their shares by weight, whoever was first', async () => {
    const worker = openGate();
    const { gate, enter, admitted, leave } = worker;
    gate.arrive(0);
    fillUp(worker);
    for (let count = 0; count < 2_000; count++) enter('first', 0);
    await leave(200);
    gate.arrive(1);
    worker.endHeadStart();
    for (let count = 0; count < 2_000; count++) enter('second', 1);
    await leave(300);
    admitted.length = 0;
    await leave(900);
    const second = admitted.filter((name) => name === 'second').length;
    expect(second).toBeGreaterThanOrEqual(580);
    expect(second).toBeLessThanOrEqual(620);
  });

  test('what an urgent job leaves unused belongs to the others, and all of it when it has gone', async () => {
    const worker = openGate();
    const { gate, enter, leave } = worker;
    gate.arrive(0);
    gate.arrive(10);
    worker.endHeadStart();
    for (let count = 0; count < 1_000; count++) enter('plain', 0);
    expect(gate.underWay).toBe(gate.limit);
    enter('urgent', 10);
    expect(gate.underWay).toBe(gate.limit + 1);
    gate.depart(10);
    await leave(300);
    expect(gate.underWay).toBe(gate.limit);
  });

  test('beside an urgent batch pages are processed one at a time, and its own at once', async () => {
    const { gate, answer, processed, turn, endHeadStart } = openGate();
    gate.arrive(0);
    gate.arrive(10);
    endHeadStart();
    for (let count = 0; count < 4; count++) answer('plain', 0);
    answer('urgent', 10);
    expect(processed).toEqual(['urgent']);
    await turn();
    expect(processed).toEqual(['urgent', 'plain']);
    answer('urgent', 10);
    await turn();
    expect(processed).toEqual(['urgent', 'plain', 'urgent', 'plain']);
    gate.depart(10);
    await turn();
    expect(processed.length).toBe(6);
    answer('plain', 0);
    expect(processed.length).toBe(7);
  });

  test('others stand still while an urgent batch has its head start, and go on when it is done', async () => {
    const { gate, enter, answer, admitted, processed, turn, settled } = openGate();
    gate.arrive(0);
    gate.arrive(10);
    enter('plain', 0);
    enter('urgent', 10);
    answer('plain', 0);
    answer('urgent', 10);
    await turn();
    expect(admitted).toEqual(['urgent']);
    expect(processed).toEqual(['urgent']);
    gate.depart(10);
    await settled();
    await turn();
    expect(admitted).toEqual(['urgent', 'plain']);
    expect(processed).toEqual(['urgent', 'plain']);
  });

  test('a head start is over after a moment, and the next one is short unless much time has passed', async () => {
    const { gate, enter, admitted, wait, settled } = openGate();
    gate.arrive(0);
    const letIn = async () => {
      admitted.length = 0;
      gate.arrive(10);
      enter('plain', 0);
      await settled();
      const isHeld = admitted.length === 0;
      wait(250);
      await settled();
      expect(admitted).toEqual(['plain']);
      gate.depart(10);
      return isHeld;
    };
    expect(await letIn()).toBe(true);
    expect(await letIn()).toBe(false);
    wait(1_000);
    expect(await letIn()).toBe(true);
  });

  test('a job that is announced holds up others only, and not for long', async () => {
    const { gate, enter, admitted, wait, settled } = openGate();
    gate.announce(10);
    enter('alone', 0);
    gate.arrive(0);
    gate.announce(0);
    enter('equal', 0);
    expect(admitted).toEqual(['alone', 'equal']);
    gate.announce(10);
    enter('held', 0);
    expect(admitted).toEqual(['alone', 'equal']);
    wait(100);
    await settled();
    expect(admitted).toEqual(['alone', 'equal', 'held']);
  });

  test('pages that are answered before the batch of an announced job is there wait, too', async () => {
    const { gate, answer, processed, turn, wait } = openGate();
    gate.arrive(0);
    gate.announce(10);
    answer('held', 0);
    await turn();
    expect(processed).toEqual([]);
    wait(100);
    await turn();
    expect(processed).toEqual(['held']);
  });

  test('no request of others comes between the announcement of a job and its batch', async () => {
    const { gate, enter, admitted, settled } = openGate();
    gate.arrive(0);
    gate.announce(10);
    enter('plain', 0);
    gate.arrive(10);
    await settled();
    expect(admitted).toEqual([]);
    gate.depart(10);
    await settled();
    expect(admitted).toEqual(['plain']);
  });

  test('of many answers at once a few are processed before what has come meanwhile is taken', async () => {
    const { answer, processed, turn } = openGate();
    for (let count = 0; count < 20; count++) answer('plain', 0);
    expect(processed.length).toBe(8);
    await turn();
    expect(processed.length).toBe(16);
    answer('late', 0);
    expect(processed.length).toBe(16);
    await turn();
    expect(processed.length).toBe(21);
    expect(processed.at(-1)).toBe('late');
  });

  test('pages of a batch that is hardly more urgent are processed by weight', async () => {
    const { gate, answer, processed, turn, endHeadStart } = openGate();
    gate.arrive(0);
    gate.arrive(1);
    endHeadStart();
    for (let count = 0; count < 100; count++) answer('plain', 0);
    for (let count = 0; count < 20; count++) answer('urgent', 1);
    while (processed.filter((name) => name === 'urgent').length < 20) await turn();
    expect(processed.filter((name) => name === 'plain').length).toBe(10);
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
    gate.leave(0);
    gate.leave(0);
    await settled();
    expect(admitted).toContain('next');
  });
});
