import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export type Mode = 'links' | 'select';

interface RunPlan {
  url: string;
  /** A fresh folder for whatever the contender keeps. */
  folder: string;
  pages: number;
}

/** What a contender says of its run. */
interface Told {
  pages: number;
  seconds: number;
  /** CPU of the run without the start of its processes, and with the servers that it used. */
  runCpuSeconds?: number;
}

export interface Contender {
  id: string;
  label: string;
  mode: Mode;
  /** What it leaves behind, for the table. */
  keeps: string;
  /** Slow contenders get fewer pages, so that a run stays short; the table says so. */
  pagesMax?: number;
  /** Why it cannot run here, if it cannot. */
  missing(): string | undefined;
  command(plan: RunPlan): { args: string[]; env?: Record<string, string> };
  /** Reads the last line of stdout. */
  read(line: string): Told;
}

export const BENCH_FOLDER = dirname(dirname(fileURLToPath(import.meta.url)));
export const ROOT_FOLDER = dirname(BENCH_FOLDER);

export function childScript(name: string): string {
  return join(BENCH_FOLDER, 'contenders', name);
}

/** Our own children end with `{"pages":…,"seconds":…}`. */
export function readPlain(line: string): Told {
  const { pages, seconds, runCpuSeconds } = JSON.parse(line) as { [K in keyof Told]?: unknown };
  if (typeof pages !== 'number' || typeof seconds !== 'number')
    throw new Error(`unexpected last line: ${line}`);
  return { pages, seconds, ...(typeof runCpuSeconds === 'number' ? { runCpuSeconds } : {}) };
}
