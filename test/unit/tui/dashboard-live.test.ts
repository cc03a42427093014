import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openDashboard } from '../../../src/tui/dashboard.ts';
import { plainLine } from '../../../src/tui/plain-progress.ts';
import { renderSummary } from '../../../src/tui/summary.ts';
import { viewOf } from '../../support/coordinator/run-view.ts';

/** Enough of a terminal for log-update: what is written, and who listens. */
class FakeTerminal extends Writable {
  isTTY: boolean;
  columns = 80;
  rows = 24;
  writes: string[] = [];
  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }
  override write(text: string): boolean {
    this.writes.push(text);
    return true;
  }
  get text(): string {
    return this.writes.join('');
  }
}

describe('openDashboard', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const open = async (terminal: FakeTerminal, env: Record<string, string> = {}, intervalMs?: number) => {
    let looks = 0;
    const view = () => viewOf({ elapsedMs: 40_000 + looks++ * 1_000 });
    return {
      dashboard: await openDashboard({ output: terminal, view, env, intervalMs }),
      looks: () => looks,
    };
  };

  test('draws at most five times a second, and hides the cursor meanwhile', async () => {
    const terminal = new FakeTerminal(true);
    const { dashboard, looks } = await open(terminal, {}, 1);
    expect(terminal.writes[0]).toBe('\u001b[?25l');
    expect(looks()).toBe(1);
    vi.advanceTimersByTime(10_000);
    expect(looks()).toBeGreaterThan(40);
    expect(looks()).toBeLessThanOrEqual(51);
    dashboard.close('the end');
    expect(terminal.writes.at(-2)).toBe('\u001b[?25h');
    expect(terminal.writes.at(-1)).toBe('the end\n');
    const after = terminal.writes.length;
    vi.advanceTimersByTime(5_000);
    dashboard.close('again');
    expect(terminal.writes.length).toBe(after);
    expect(terminal.listenerCount('resize')).toBe(0);
  });

  test('fits a terminal that was resized, and never takes its last row', async () => {
    const terminal = new FakeTerminal(true);
    const { dashboard } = await open(terminal);
    vi.advanceTimersByTime(400);
    terminal.columns = 60;
    terminal.rows = 16;
    const before = terminal.writes.length;
    terminal.emit('resize');
    terminal.emit('resize');
    expect(terminal.writes.slice(before)).toContain('\u001b[H\u001b[J');
    vi.advanceTimersByTime(200);
    const frame = stripVTControlCharacters(terminal.writes.at(-1)!);
    const lines = frame.replace(/\n$/, '').split('\n');
    expect(lines).toHaveLength(15);
    expect(new Set(lines.map((line) => line.length))).toEqual(new Set([60]));
    dashboard.close();
  });

  test('NO_COLOR takes the colours, not the dashboard', async () => {
    const terminal = new FakeTerminal(true);
    const { dashboard } = await open(terminal, { NO_COLOR: '1' });
    dashboard.close();
    expect(terminal.text).toContain('╭─ seine ── shop');
    expect(terminal.text).not.toMatch(/\u001b\[[\d;]*m/);
  });

  test('a warning stays above the frame, which is drawn again below it', async () => {
    const terminal = new FakeTerminal(true);
    const { dashboard } = await open(terminal);
    const before = terminal.writes.length;
    dashboard.print('warning: Redis does not answer\n');
    const text = stripVTControlCharacters(terminal.writes.slice(before).join(''));
    expect(text.indexOf('warning: Redis does not answer\n')).toBeGreaterThanOrEqual(0);
    expect(text.lastIndexOf('╭─ seine')).toBeGreaterThan(text.indexOf('warning'));
    const later = terminal.writes.length;
    vi.advanceTimersByTime(1_000);
    expect(terminal.writes.slice(later).join('')).not.toContain('warning: Redis');
    dashboard.close();
    dashboard.print('after\n');
    expect(terminal.writes.at(-1)).toBe('after\n');
  });

  test('the last three warnings are inside of the frame, whoever gave them', async () => {
    const terminal = new FakeTerminal(true);
    terminal.rows = 60;
    const own = { at: 1, level: 'warn' as const, text: 'a.example refuses every page' };
    const view = () => viewOf({ warnings: [own] });
    const dashboard = await openDashboard({ output: terminal, view });
    const inFrame = () =>
      stripVTControlCharacters(terminal.writes.at(-1)!)
        .split('\n')
        .filter((line) => /refuses|Redis|disk|S3/.test(line))
        .map((line) => line.replaceAll('│', '').trim());
    // It reaches the terminal both ways.
    dashboard.print('warning: a.example refuses every page {"nextProbe":"12:00"}\n');
    dashboard.print('warning: lost the connection to Redis\n');
    expect(inFrame()).toEqual(['a.example refuses every page', 'lost the connection to Redis']);
    dashboard.print('a line that is no warning: S3\n');
    dashboard.print('error: the disk is full\n');
    dashboard.print('warning: Redis is available again\n');
    expect(inFrame()).toEqual([
      'lost the connection to Redis',
      'the disk is full',
      'Redis is available again',
    ]);
    dashboard.close();
  });

  test.each([{}, { CI: '' }, { CI: 'false' }, { TERM: 'xterm' }])(
    'a terminal with %j is drawn on',
    async (env) => {
      const terminal = new FakeTerminal(true);
      const { dashboard } = await open(terminal, env as Record<string, string>);
      expect(terminal.text).toContain('\u001b[?25l');
      dashboard.close();
    },
  );

  test.each([
    ['not a terminal', false, {}],
    ['CI', true, { CI: 'true' }],
    ['a dumb terminal', true, { TERM: 'dumb' }],
  ])(
    'plain lines for %s: first after two seconds, then ever more rarely, and a last one',
    async (_name, isTTY, env) => {
      const terminal = new FakeTerminal(isTTY);
      const { dashboard } = await open(terminal, env as Record<string, string>, 10);
      vi.advanceTimersByTime(1_999);
      expect(terminal.writes).toEqual([]);
      // A notice, once, and after 2, 6, 14, 30, 60 and 90 seconds a line.
      vi.advanceTimersByTime(88_001);
      expect(terminal.writes).toHaveLength(7);
      expect(terminal.writes[0]).toBe('stopping soon\n');
      expect(terminal.text).not.toContain('\u001b');
      dashboard.close('the end');
      expect(terminal.writes).toHaveLength(9);
      expect(terminal.writes[7]).toMatch(/^46 s shop running · .*\n$/);
      expect(terminal.writes[8]).toBe('the end\n');
      vi.advanceTimersByTime(60_000);
      expect(terminal.writes).toHaveLength(9);
    },
  );
});

describe('summary and plain lines', () => {
  test('the summary says what became of every task', () => {
    const view = viewOf({ job: { name: 'shop', state: 'done', dir: '/home/ana/.seine', unit: 'pages' } });
    view.counters = { ...view.counters, accepted: 262, pending: 0, leased: 0 };
    expect(`\n${renderSummary(view)}\n`).toMatchInlineSnapshot(`
      "
      shop is done after 42 s

        accepted     262
        done         250   240 records
        skipped       10   robots 10
        dead           2   not-found 2

        pace       6.0 pages/s · 270 requests · 7 retries · 12.3 MB
        files      /home/ana/.seine
      "
    `);
    expect(stripVTControlCharacters(renderSummary(view, { color: true }))).toBe(renderSummary(view));
    view.counters = { ...view.counters, dropped: 1 };
    expect(renderSummary(view)).toContain(
      '\n  dropped    1 link dropped by limits.perTemplate: raise it, or set it to null\n',
    );
    expect(plainLine(view)).toContain(' · 1 links dropped · ');
  });

  test('the plain line', () => {
    expect(plainLine(viewOf())).toBe(
      '42 s shop running · 66 % · 250 done · 138 left · 10 skipped · 2 dead · 12.3 pages/s · 12.3 MB · ETA 11 s',
    );
    // Pages that were the same as before are done as well.
    const { counters } = viewOf();
    expect(plainLine(viewOf({ counters: { ...counters, done: 50, unchanged: 3 } }))).toContain(
      ' · 53 done · ',
    );
  });
});
