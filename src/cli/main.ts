import { messageOf, SeineError } from '../core/errors.ts';
import { VERSION } from '../core/identity/identity.ts';
import { hideCredentials } from '../core/text/redact.ts';
import { type Command, exitCodeOf, makeContext, print } from './context.ts';
import { commandHelp, generalHelp } from './help.ts';
import { parseCommandLine } from './parse-args.ts';
import { commandOf } from './specs/commands.ts';

/** Each command loads only what it needs: `seine status` should not wait for the parts of a crawler. */
const HANDLERS: Record<string, () => Promise<Command>> = {
  run: async () => (await import('./commands/run.ts')).runCommand,
  resume: async () => (await import('./commands/run.ts')).resumeCommand,
  refresh: async () => (await import('./commands/refresh.ts')).refreshCommand,
  serve: async () => (await import('./commands/serve.ts')).serveCommand,
  worker: async () => (await import('./commands/worker.ts')).workerCommand,
  workers: async () => (await import('./commands/workers.ts')).workersCommand,
  'fleet-key': async () => (await import('./commands/fleet-key.ts')).fleetKeyCommand,
  lambda: async () => (await import('./lambda/lambda.ts')).lambdaCommand,
  status: async () => (await import('./commands/reports.ts')).statusCommand,
  hosts: async () => (await import('./commands/hosts.ts')).hostsCommand,
  proxies: async () => (await import('./commands/proxies.ts')).proxiesCommand,
  jobs: async () => (await import('./commands/reports.ts')).jobsCommand,
  stop: async () => (await import('./commands/reports.ts')).stopCommand,
  cancel: async () => (await import('./commands/reports.ts')).cancelCommand,
  priority: async () => (await import('./commands/priority.ts')).priorityCommand,
  dead: async () => (await import('./commands/reports.ts')).deadCommand,
  export: async () => (await import('./export/export.ts')).exportCommand,
  reparse: async () => (await import('./commands/reparse.ts')).reparseCommand,
  sheet: async () => (await import('./commands/sheet.ts')).sheetCommand,
  page: async () => (await import('./commands/page.ts')).pageCommand,
  doctor: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  hostile: async () => (await import('./commands/hostile.ts')).hostileCommand,
  schema: async () => (await import('./commands/schema.ts')).schemaCommand,
};

/** Runs one command line and returns its exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  // `seine jobs | head` closes the pipe early; the rest has no reader.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  try {
    const [first] = argv;
    if (first === undefined || first === 'help' || first === '--help' || first === '-h') {
      const about = commandOf(argv[1] ?? '');
      process.stdout.write(about ? commandHelp(argv[1]!, about) : generalHelp());
      return 0;
    }
    if (first === '--version' || first === '-v' || first === 'version') {
      process.stdout.write(`${VERSION}\n`);
      return 0;
    }
    if (argv.includes('--help') || argv.includes('-h')) {
      const spec = commandOf(first);
      if (spec) {
        process.stdout.write(commandHelp(first, spec));
        return 0;
      }
    }
    const parsed = parseCommandLine(argv);
    const command = await HANDLERS[parsed.command]!();
    return exitCodeOf(await command(await makeContext(parsed)));
  } catch (error) {
    return report(error);
  }
}

/** One sentence and what to do; a stack only for bugs, and only when asked for. */
function report(error: unknown): number {
  if (error instanceof SeineError) {
    print(
      process.stderr,
      `seine: ${hideCredentials(error.message)}${error.hint ? `\n  ${error.hint}` : ''}\n`,
    );
    return exitCodeOf(error.exit);
  }
  const stack = process.env.SEINE_LOG === 'info' && error instanceof Error ? `\n${error.stack}` : '';
  print(
    process.stderr,
    `seine: internal error: ${hideCredentials(messageOf(error) + stack)}\n  set SEINE_LOG=info and run again to see where\n`,
  );
  return exitCodeOf('internal');
}
