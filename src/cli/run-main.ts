import { EarlyThreads } from '../app/early-threads.ts';
import { readServerFile } from '../server/server-file.ts';
import { runCommandLine } from './command-line.ts';
import type { Context } from './context.ts';

/** Runs of jobs in a bundle of their own, as in report-main.ts. Threads load while the rest of it does. */
export function main(argv: readonly string[]): Promise<number> {
  return runCommandLine(argv, {
    async run(context) {
      if (needsThreads(context)) context.threads = new EarlyThreads(context.settings);
      return (await import('./commands/run/run.ts')).runCommand;
    },
    resume: async () => (await import('./commands/run/run.ts')).resumeCommand,
  });
}

/** A server has its own. */
function needsThreads({ parsed: { args, values }, settings }: Context): boolean {
  return args.length > 0 && values['dry-run'] !== 'true' && readServerFile(settings.dir) === null;
}
