import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunView } from '../../../src/coordinator/reports/progress.ts';
import { zeroCounters } from '../../../src/core/model.ts';
import { openPlainProgress, plainLine } from '../../../src/tui/plain-progress.ts';
import { renderDashboard } from '../../../src/tui/render-dashboard.ts';
import { START, viewOf } from '../../support/coordinator/run-view.ts';

const frameOf = (view: RunView, columns: number, rows: number) =>
  renderDashboard(view, { columns, rows, color: false }).split('\n');

describe('renderDashboard', () => {
  test('80 by 24', () => {
    expect(
      `\n${renderDashboard(viewOf(), { columns: 80, rows: 24, color: false })}\n`,
    ).toMatchInlineSnapshot(`
      "
      ╭─ seine ── shop ───────────────────────────────────────────── running · 42 s ─╮
      │                                                                              │
      │ ████████████████████████████████████░░░░░░░░░░░░░░░░░░░   66 %      ETA 11 s │
      │                                                                              │
      │ done        waiting     skipped     dead        records     pages/s          │
      │ 250         100         10          2           240         12.3             │
      │                                                                              │
      │        ▄█▄                                                       peak 16.0/s │
      │      ▄█████                                                                  │
      │    ▄███████                                                                  │
      │  ▄█████████                                                       mean 6.0/s │
      ├─ hosts (2) ──────────────────────────────────────────────────────────────────┤
      │ host                       state  requests     done  failed      p95   req/s │
      │ shop.example              active       260      246       9   430 ms    12.3 │
      │ cdn.example            throttled        10        4       6        –       0 │
      ├─ failed attempts ─────────────────────┬─ workers ────────────────────────────┤
      │ server-error          ━━━━━━━       8 │ thread-1       140    6.1/s      now │
      │ not-found             ━━            2 │ thread-2       122    6.2/s    3.0 s │
      ├─ recent ──────────────────────────────┴──────────────────────────────────────┤
      │   3.0 s  server-error http://shop.example/product/7                          │
      │    40 s  not-found    http://shop.example/gone                               │
      │    41 s  stopping soon                                                       │
      ╰─ files /home/ana/.seine ─────────────────────────────────────────────────────╯
      "
    `);
  });

  test('60 by 16', () => {
    expect(
      `\n${renderDashboard(viewOf(), { columns: 60, rows: 16, color: false })}\n`,
    ).toMatchInlineSnapshot(`
      "
      ╭─ seine ── shop ───────────────────────── running · 42 s ─╮
      │ ██████████████████████▉░░░░░░░░░░░░   66 %      ETA 11 s │
      │ done       waiting    skipped    dead       pages/s      │
      │ 250        100        10         2          12.3         │
      │      ▂▄▆█▆▄                                  peak 16.0/s │
      │  ▂▄▆███████                                   mean 6.0/s │
      ├─ hosts (2) ──────────────────────────────────────────────┤
      │ host                       done  failed      p95   req/s │
      │ shop.example                246       9   430 ms    12.3 │
      │ cdn.example                   4       6        –       0 │
      ├─ failed attempts ───────────┬─ workers ──────────────────┤
      │ server-error              8 │ thread-1      140    6.1/s │
      │ not-found                 2 │ thread-2      122    6.2/s │
      ├─ recent ────────────────────┴────────────────────────────┤
      │    41 s  stopping soon                                   │
      ╰─ files /home/ana/.seine ─────────────────────────────────╯
      "
    `);
  });

  test('never wider or higher than asked, at any size and with any content', () => {
    const text = fc.string({ unit: 'binary', maxLength: 150 });
    const number = fc.oneof(fc.nat(), fc.constant(0), fc.double({ min: 0, max: 1e15, noNaN: true }));
    const view = fc.record({
      name: text,
      host: text,
      numbers: fc.array(number, { minLength: 20, maxLength: 20 }),
      listLength: fc.nat(30),
      eta: fc.option(number),
      discovering: fc.boolean(),
      dir: fc.option(text),
      state: fc.constantFrom<RunView['job']['state']>(
        'running',
        'done',
        'stopped',
        'tripped',
        'stopping',
        'cancelled',
      ),
    });
    const size = fc.record({
      columns: fc.integer({ min: 1, max: 200 }),
      rows: fc.integer({ min: 1, max: 70 }),
    });
    fc.assert(
      fc.property(view, size, fc.boolean(), (made, { columns, rows }, color) => {
        const n = (i: number) => made.numbers[i]!;
        const list = <T>(make: (i: number) => T) =>
          Array.from({ length: made.listLength }, (_, i) => make(i));
        const base = viewOf();
        const full = viewOf({
          job: { name: made.name, state: made.state, dir: made.dir, unit: 'pages' },
          counters: {
            ...base.counters,
            accepted: n(0),
            done: n(1),
            dead: n(2),
            pending: n(3),
            bytes: n(4),
            skipped: n(17),
          },
          elapsedMs: n(5),
          fraction: Math.min(1, n(6)),
          pagesPerSecond: n(7),
          averagePagesPerSecond: n(8),
          history: made.numbers,
          etaMs: made.eta,
          discovering: made.discovering,
          hosts: list(() => ({
            ...base.hosts[0]!,
            host: made.host,
            requests: n(9),
            done: n(10),
            p95Ms: n(11),
            requestsPerSecond: n(12),
          })),
          failures: list(() => ({ code: 'robots-unreachable' as const, count: n(13) })),
          workers: list(() => ({
            ...base.workers[0]!,
            name: made.host,
            tasks: n(14),
            tasksPerSecond: n(15),
          })),
          recent: list((i) => ({
            at: START + n(16),
            level: 'warn' as const,
            text: i % 2 ? made.host : `reset  ${made.host}`,
          })),
        });
        const lines = renderDashboard(full, { columns, rows, color }).split('\n');
        expect(lines.length).toBeLessThanOrEqual(rows);
        const framed = columns >= 40 && rows >= 5;
        for (const line of lines) {
          // Our own colours are the only escapes that may be there.
          const bare = line.replace(/\u001b\[[\d;]+m/g, '');
          if (!color) expect(line).toBe(bare);
          expect(bare).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e]/);
          if (framed) expect([...bare]).toHaveLength(Math.min(columns, 120));
          else expect([...bare].length).toBeLessThanOrEqual(columns);
        }
      }),
      { numRuns: 400 },
    );
  });

  test('escapes from elsewhere are taken out, and long hosts keep both ends', () => {
    const evil = '\u001b[31mred\u001b[0m\u001b]0;title\u0007\r\n\u009b2J\u202eevil.example';
    const view = viewOf({
      job: { name: evil, state: 'running', dir: evil, unit: 'pages' },
      hosts: [
        { ...viewOf().hosts[0]!, host: `${evil}.com` },
        { ...viewOf().hosts[0]!, host: `first.${'x'.repeat(100)}.last` },
      ],
      recent: [{ at: START, level: 'error', text: `reset  http://a/${evil}` }],
    });
    const frame = renderDashboard(view, { columns: 80, rows: 40, color: false });
    expect(frame).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(frame).toContain('red');
    expect(frame).toMatch(/first\.x+…x+\.last/);
  });

  test('colour changes nothing but colour', () => {
    const size = { columns: 100, rows: 30 };
    const colored = renderDashboard(viewOf(), { ...size, color: true });
    expect(colored).toContain('\u001b[');
    expect(stripVTControlCharacters(colored)).toBe(renderDashboard(viewOf(), { ...size, color: false }));
  });

  test('more room shows more, and the least important goes first', () => {
    const has = (rows: number, text: string) => frameOf(viewOf(), 80, rows).join('\n').includes(text);
    expect([has(5, 'peak'), has(6, 'peak')]).toEqual([false, true]);
    expect([has(8, 'shop.example'), has(9, 'shop.example')]).toEqual([false, true]);
    expect([has(10, 'workers'), has(11, 'workers')]).toEqual([false, true]);
    expect([has(12, 'recent'), has(13, 'recent')]).toEqual([false, true]);
    expect(has(5, '250')).toBe(true);
    expect(frameOf(viewOf(), 80, 200).length).toBeLessThan(40);
  });

  test('why nothing moves, and the last warnings, also in plain lines', () => {
    const view = viewOf({
      waitingFor: 'waiting for Redis at redis:6379 since 12 s',
      warnings: ['first', 'second', 'third'].map((text) => ({ at: START, level: 'warn', text })),
      job: { name: 'pictures', state: 'running', dir: null, unit: 'images' },
    });
    const frame = renderDashboard(view, { columns: 80, rows: 40, color: false });
    for (const text of ['waiting for Redis at redis:6379 since 12 s', 'first', 'second', 'third', 'images/s'])
      expect(frame).toContain(text);
    expect(frame).not.toContain('pages/s');
    // In the smallest frame that has room for one line more, it is the reason.
    expect(renderDashboard(view, { columns: 80, rows: 6, color: false })).toContain('waiting for Redis');
    expect(plainLine(view)).toMatch(/images\/s .* · waiting for Redis at redis:6379 since 12 s$/);
  });

  test('the ETA: open at first, a lower bound while links come in, gone at the end', () => {
    const bar = (change: Partial<RunView>) => frameOf(viewOf(change), 80, 24)[2];
    expect(bar({ etaMs: null })).toContain('ETA –');
    expect(bar({ discovering: true })).toContain('ETA ≥ 11 s');
    expect(bar({ etaMs: 0 })).toContain('ETA 0 ms');
    const done = {
      job: { name: 'shop', state: 'done' as const, dir: null, unit: 'pages' as const },
      fraction: 1,
      etaMs: 0,
    };
    expect(bar(done)).toMatch(/100 % +done/);
  });

  test('links that a limit dropped are told, with the setting, also where there is little room', () => {
    const dropped = viewOf();
    expect(frameOf(dropped, 80, 24).join('\n')).not.toContain('dropped');
    dropped.counters = { ...dropped.counters, dropped: 50_123 };
    for (const rows of [24, 12, 6])
      expect(frameOf(dropped, 80, rows).join('\n')).toContain(
        '50,123 links dropped by limits.perTemplate: raise it, or set it to null',
      );
    expect(frameOf(dropped, 80, 24).length).toBeLessThanOrEqual(24);
  });

  test('a run that has just begun, with nothing to show yet', () => {
    const empty = viewOf({
      counters: zeroCounters(),
      fraction: 0,
      history: [],
      hosts: [],
      hostsTotal: 0,
      failures: [],
      workers: [],
      recent: [],
      etaMs: null,
      pagesPerSecond: 0,
      averagePagesPerSecond: 0,
    });
    const frame = frameOf(empty, 80, 24).join('\n');
    expect(frame).toContain('0 %');
    expect(frame).toContain('none');
    expect(frame).not.toMatch(/NaN|undefined|Infinity/);
  });
});

test('in logs, what is worth a notice is written once', () => {
  const notice = {
    at: START,
    level: 'info' as const,
    text: 'read as a list of 3 URLs  https://a.example/map.xml',
  };
  const lines: string[] = [];
  const output = { write: (text: string) => lines.push(text) };
  const view = () => viewOf({ recent: [{ ...notice, level: 'warn', text: 'timeout' }, notice] });
  openPlainProgress({ output, view }).close();
  expect(lines).toEqual([`${notice.text}\n`, `${plainLine(view())}\n`]);
});
