import { messageOf, SeineError } from '../core/errors.ts';
import { VERSION } from '../core/identity.ts';
import { COMMANDS } from './commands.ts';
import { type Command, exitCodeOf, makeContext } from './context.ts';
import { doctorCommand } from './doctor-command.ts';
import { exportCommand } from './export-command.ts';
import { commandHelp, generalHelp } from './help.ts';
import { parseCommandLine } from './parse-args.ts';
import {
  cancelCommand,
  deadCommand,
  jobsCommand,
  pageCommand,
  statusCommand,
  stopCommand,
} from './report-commands.ts';
import { resumeCommand, runCommand } from './run-command.ts';
import { schemaCommand } from './schema-command.ts';

const HANDLERS: Record<string, Command> = {
  run: runCommand,
  resume: resumeCommand,
  status: statusCommand,
  jobs: jobsCommand,
  stop: stopCommand,
  cancel: cancelCommand,
  dead: deadCommand,
  export: exportCommand,
  page: pageCommand,
  doctor: doctorCommand,
  schema: schemaCommand,
};

/** Runs one command line and returns its exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    const [first] = argv;
    if (first === undefined || first === 'help' || first === '--help' || first === '-h') {
      const about = COMMANDS[argv[1] ?? ''];
      process.stdout.write(about ? commandHelp(argv[1]!, about) : generalHelp());
      return 0;
    }
    if (first === '--version' || first === '-v' || first === 'version') {
      process.stdout.write(`${VERSION}\n`);
      return 0;
    }
    if (argv.includes('--help') || argv.includes('-h')) {
      const spec = COMMANDS[first];
      if (spec) {
        process.stdout.write(commandHelp(first, spec));
        return 0;
      }
    }
    const parsed = parseCommandLine(argv);
    return exitCodeOf(await HANDLERS[parsed.command]!(makeContext(parsed)));
  } catch (error) {
    return report(error);
  }
}

/** One sentence and what to do; a stack only for bugs, and only when asked for. */
function report(error: unknown): number {
  if (error instanceof SeineError) {
    process.stderr.write(`seine: ${error.message}${error.hint ? `\n  ${error.hint}` : ''}\n`);
    return exitCodeOf(error.exit);
  }
  const stack = process.env.SEINE_LOG === 'info' && error instanceof Error ? `\n${error.stack}` : '';
  process.stderr.write(
    `seine: internal error: ${messageOf(error)}${stack}\n  run again with SEINE_LOG=info for the place\n`,
  );
  return exitCodeOf('internal');
}
