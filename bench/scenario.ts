import type { Scratch } from './scratch.ts';
import type { Markup } from './site.ts';

export interface BenchOptions {
  pages: number;
  rounds: number;
  crawleePages: number;
  markup: Markup;
  /** Ids, or beginnings of ids, of the contenders wanted; empty means all. */
  only: string[];
  mode: 'links' | 'select' | 'both';
  originWorkers: number;
  /** A timed run is repeated while other programs take more than this share of the machine; 1 means never. */
  quietShare: number;
  write: boolean;
  /** Of the largest store of `scale`. */
  tasks: number;
  /** Where the large stores of `scale` stay, to be filled further or measured again; null: they are removed. */
  keep: string | null;
}

export interface Verdict {
  bar: string;
  measured: string;
  /** undefined: a contender was missing, so nothing can be said. */
  passed: boolean | undefined;
}

export interface ScenarioResult {
  verdicts: Verdict[];
  /** Kept in bench/results/latest.json under the scenario's name. */
  data: unknown;
  /** The part of it that this run has measured, for bench/results/history.jsonl; all of it when absent. */
  figures?: unknown;
  /** Markdown for the scenario's section of docs/benchmarks.md. */
  section: string;
  /** Markdown for the short table of the README; only of the scenario that it shows. */
  readme?: string;
  /** Extra files for docs/, by name. */
  files?: Record<string, string>;
}

export interface Scenario {
  name: string;
  summary: string;
  run(options: BenchOptions, scratch: Scratch): Promise<ScenarioResult>;
}
