import { runCommandLine } from './command-line.ts';
import {
  cancelCommand,
  deadCommand,
  jobsCommand,
  statusCommand,
  stopCommand,
} from './commands/jobs/reports.ts';

/**
 * Commands that show or ask something and are done, in a bundle of their own: what they need is in a few files, where the
 * bundle of all commands has 60 small ones. `seine status` takes three quarters of the CPU.
 */
export function main(argv: readonly string[]): Promise<number> {
  return runCommandLine(argv, {
    status: async () => statusCommand,
    jobs: async () => jobsCommand,
    stop: async () => stopCommand,
    cancel: async () => cancelCommand,
    dead: async () => deadCommand,
  });
}
