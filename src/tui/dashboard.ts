import type { RunView } from '../coordinator/reports/run-view.ts';
import { openPlainProgress } from './plain-progress.ts';
import { renderDashboard } from './render-dashboard.ts';

interface DashboardOptions {
  output: NodeJS.WriteStream;
  view: () => RunView;
  intervalMs?: number;
  /** NO_COLOR, CI and TERM are looked at; the reader of the environment passes it in. */
  env?: Record<string, string | undefined>;
}

interface Dashboard {
  /** Leaves the last frame where it is, and `finalText` below it. */
  close(finalText?: string): void;
}

/** Five frames a second are as live as a person can read. */
const INTERVAL_MS_MIN = 200;
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const CLEAR_SCREEN = '\u001b[H\u001b[J';

function wantsPlain(output: NodeJS.WriteStream, env: Record<string, string | undefined>): boolean {
  const set = (name: string) => env[name] !== undefined && env[name] !== '' && env[name] !== 'false';
  return output.isTTY !== true || set('NO_COLOR') || set('CI') || env.TERM === 'dumb';
}

/** The live dashboard on a terminal; plain lines anywhere else. */
export async function openDashboard(options: DashboardOptions): Promise<Dashboard> {
  const { output, view, env = {} } = options;
  if (wantsPlain(output, env)) return openPlainProgress(options);
  // Loaded only for terminals: what it needs to measure text takes a tenth of the start of a run.
  const { createLogUpdate } = await import('log-update');

  const intervalMs = Math.max(INTERVAL_MS_MIN, options.intervalMs ?? 0);
  // Its own cursor handling is for stderr only; ours follows the stream.
  const log = createLogUpdate(output, { showCursor: true });
  let columns = output.columns;
  let drawnAt = Number.NEGATIVE_INFINITY;
  let pending: NodeJS.Timeout | null = null;
  let open = true;

  const draw = () => {
    drawnAt = performance.now();
    // log-update ends with a line break, so the last row of the terminal stays free.
    const size = { columns: output.columns ?? 80, rows: (output.rows ?? 24) - 1, color: true };
    log(renderDashboard(view(), size));
  };
  const drawSoon = () => {
    pending ??= setTimeout(
      () => {
        pending = null;
        draw();
      },
      Math.max(0, drawnAt + intervalMs - performance.now()),
    ).unref();
  };
  const onResize = () => {
    // A narrower terminal has wrapped the old frame, over an unknown number of rows.
    if (output.columns < columns) {
      log.clear();
      output.write(CLEAR_SCREEN);
    }
    columns = output.columns;
    drawSoon();
  };
  const showCursor = () => output.write(SHOW_CURSOR);

  output.write(HIDE_CURSOR);
  process.once('exit', showCursor);
  output.on('resize', onResize);
  draw();
  const timer = setInterval(drawSoon, intervalMs);
  timer.unref();

  return {
    close(finalText) {
      if (!open) return;
      open = false;
      clearInterval(timer);
      if (pending !== null) clearTimeout(pending);
      output.off('resize', onResize);
      process.off('exit', showCursor);
      draw();
      log.done();
      showCursor();
      if (finalText !== undefined) output.write(`${finalText}\n`);
    },
  };
}
