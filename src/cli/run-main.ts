import { runCommandLine } from './command-line.ts';
import { resumeCommand, runCommand } from './commands/run/run.ts';

/** Runs of jobs in a bundle of their own, as in report-main.ts. */
export function main(argv: readonly string[]): Promise<number> {
  return runCommandLine(argv, { run: async () => runCommand, resume: async () => resumeCommand });
}
