import { messageOf, SeineError } from '../core/errors.ts';
import { VERSION } from '../core/identity/identity.ts';
import { hideCredentials } from '../core/text/redact.ts';
import { commandOf } from './commands.ts';
import { type Command, exitCodeOf, makeContext } from './context.ts';
import { commandHelp, generalHelp } from './help.ts';
import { parseCommandLine } from './parse-args.ts';

/** Each command loads only what it needs: `seine status` should not wait for the parts of a crawler. */
const HANDLERS: Record<string, () => Promise<Command>> = {
  run: async () => (await import('./run-command.ts')).runCommand,
  resume: async () => (await import('./run-command.ts')).resumeCommand,
  refresh: async () => (await import('./refresh-command.ts')).refreshCommand,
  serve: async () => (await import('./serve-command.ts')).serveCommand,
  worker: async () => (await import('./worker-command.ts')).workerCommand,
  workers: async () => (await import('./workers-command.ts')).workersCommand,
  lambda: async () => (await import('./lambda-command.ts')).lambdaCommand,
  status: async () => (await import('./report-commands.ts')).statusCommand,
  hosts: async () => (await import('./hosts-command.ts')).hostsCommand,
  proxies: async () => (await import('./proxies-command.ts')).proxiesCommand,
  jobs: async () => (await import('./report-commands.ts')).jobsCommand,
  stop: async () => (await import('./report-commands.ts')).stopCommand,
  cancel: async () => (await import('./report-commands.ts')).cancelCommand,
  dead: async () => (await import('./report-commands.ts')).deadCommand,
  export: async () => (await import('./export-command.ts')).exportCommand,
  reparse: async () => (await import('./reparse-command.ts')).reparseCommand,
  sheet: async () => (await import('./sheet-command.ts')).sheetCommand,
  page: async () => (await import('./page-command.ts')).pageCommand,
  doctor: async () => (await import('./doctor-command.ts')).doctorCommand,
  hostile: async () => (await import('./hostile-command.ts')).hostileCommand,
  schema: async () => (await import('./schema-command.ts')).schemaCommand,
};

/** Runs one command line and returns its exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  // `seine jobs | head` closes the pipe early; nobody is left to read the rest.
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
    process.stderr.write(
      `seine: ${hideCredentials(error.message)}${error.hint ? `\n  ${error.hint}` : ''}\n`,
    );
    return exitCodeOf(error.exit);
  }
  const stack = process.env.SEINE_LOG === 'info' && error instanceof Error ? `\n${error.stack}` : '';
  process.stderr.write(
    `seine: internal error: ${hideCredentials(messageOf(error) + stack)}\n  set SEINE_LOG=info and run again to see where\n`,
  );
  return exitCodeOf('internal');
}
