import type { createLogUpdate } from 'log-update';
import type { RunView } from '../coordinator/reports/run-view.ts';
import { openPlainProgress } from './plain-progress.ts';
import { renderDashboard } from './render-dashboard.ts';

/** Where a dashboard is drawn; its size is unknown where it is no terminal. */
type Terminal = NodeJS.WritableStream & Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'rows'>>;

interface DashboardOptions {
  output: Terminal;
  view: () => RunView;
  intervalMs?: number;
  /** NO_COLOR, CI and TERM are looked at; the reader of the environment passes it in. */
  env?: Record<string, string | undefined>;
}

type LogUpdate = ReturnType<typeof createLogUpdate>;

interface Dashboard {
  /** Writes a line that stays: above the frame, or between the plain lines. */
  print(text: string): void;
  /** Leaves the last frame where it is, and `finalText` below it. */
  close(finalText?: string): void;
}

/** Five frames a second are as live as a person can read. */
const INTERVAL_MS_MIN = 200;
const WARNINGS_SHOWN = 3;
const [COLUMNS_DEFAULT, ROWS_DEFAULT] = [80, 24];
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const CLEAR_SCREEN = '\u001b[H\u001b[J';

function wantsPlain(output: Terminal, env: Record<string, string | undefined>): boolean {
  const set = (name: string) => env[name] !== undefined && env[name] !== '' && env[name] !== 'false';
  return output.isTTY !== true || set('CI') || env.TERM === 'dumb';
}

/** The live dashboard on a terminal; plain lines anywhere else. */
export async function openDashboard(options: DashboardOptions): Promise<Dashboard> {
  if (wantsPlain(options.output, options.env ?? {})) return openPlainProgress(options);
  // Loaded only for terminals: what it needs to measure text takes a tenth of the start of a run.
  const { createLogUpdate } = await import('log-update');
  // Its own cursor handling is for stderr only; ours follows the stream.
  return new LiveDashboard(options, createLogUpdate(options.output, { showCursor: true }));
}

class LiveDashboard implements Dashboard {
  readonly #output: Terminal;
  readonly #view: () => RunView;
  readonly #log: LogUpdate;
  readonly #intervalMs: number;
  readonly #timer: NodeJS.Timeout;
  readonly #color: boolean;
  #columns: number;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #pending: NodeJS.Timeout | null = null;
  #isOpen = true;
  /** Also of what is not part of the run: the connection to Redis, the store. */
  #warnings: RunView['warnings'] = [];

  constructor({ output, view, intervalMs = 0, env = {} }: DashboardOptions, log: LogUpdate) {
    this.#color = (env.NO_COLOR ?? '') === '';
    this.#output = output;
    this.#view = view;
    this.#log = log;
    this.#intervalMs = Math.max(INTERVAL_MS_MIN, intervalMs);
    this.#columns = output.columns ?? COLUMNS_DEFAULT;
    output.write(HIDE_CURSOR);
    process.once('exit', this.#showCursor);
    output.on('resize', this.#onResize);
    this.#draw();
    this.#timer = setInterval(() => this.#drawSoon(), this.#intervalMs).unref();
  }

  close(finalText?: string): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearInterval(this.#timer);
    if (this.#pending !== null) clearTimeout(this.#pending);
    this.#output.off('resize', this.#onResize);
    process.off('exit', this.#showCursor);
    this.#draw();
    this.#log.done();
    this.#showCursor();
    if (finalText !== undefined) this.#output.write(`${finalText}\n`);
  }

  print(text: string): void {
    this.#noteWarning(text);
    if (!this.#isOpen) this.#output.write(text);
    else this.#log.persist(text.replace(/\n$/, ''));
    if (this.#isOpen) this.#draw();
  }

  #draw(): void {
    this.#drawnAt = performance.now();
    const { columns = COLUMNS_DEFAULT, rows = ROWS_DEFAULT } = this.#output;
    // log-update ends with a line break, so the last row of the terminal stays free.
    const view = this.#view();
    const others = view.warnings.filter(({ text }) => !this.#warnings.some((own) => own.text === text));
    const warnings = [...others, ...this.#warnings].slice(-WARNINGS_SHOWN);
    this.#log(renderDashboard({ ...view, warnings }, { columns, rows: rows - 1, color: this.#color }));
  }

  #noteWarning(line: string): void {
    const [, label, text] = /^(warning|error): (.+?)(?: \{.*\})?\n?$/.exec(line) ?? [];
    if (text === undefined) return;
    const level = label === 'error' ? 'error' : 'warn';
    this.#warnings = [...this.#warnings, { at: Date.now(), level, text } as const].slice(-WARNINGS_SHOWN);
  }

  #drawSoon(): void {
    this.#pending ??= setTimeout(
      () => {
        this.#pending = null;
        this.#draw();
      },
      Math.max(0, this.#drawnAt + this.#intervalMs - performance.now()),
    ).unref();
  }

  readonly #onResize = () => {
    // A narrower terminal has wrapped the old frame over an unknown number of rows.
    const { columns = COLUMNS_DEFAULT } = this.#output;
    if (columns < this.#columns) {
      this.#log.clear();
      this.#output.write(CLEAR_SCREEN);
    }
    this.#columns = columns;
    this.#drawSoon();
  };

  readonly #showCursor = () => this.#output.write(SHOW_CURSOR);
}
