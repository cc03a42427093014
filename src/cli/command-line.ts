import { messageOf, SeineError } from '../core/errors.ts';
import { VERSION } from '../core/identity/identity.ts';
import { hideCredentials } from '../core/text/redact.ts';
import { type Command, type Context, exitCodeOf, makeContext, type Output, print } from './context.ts';
import { commandHelp, generalHelp } from './help.ts';
import { parseCommandLine } from './parse-args.ts';
import { commandOf } from './specs/commands.ts';

/** How each command is loaded, when its settings are known. */
export type Handlers = Record<string, (context: Context) => Promise<Command>>;

/** Runs one command line and returns its exit code. */
export async function runCommandLine(
  argv: readonly string[],
  handlers: Handlers,
  output: Output = process,
): Promise<number> {
  // `seine jobs | head` closes the pipe early; the rest has no reader.
  if (output === process)
    process.stdout.on('error', (error: NodeJS.ErrnoException) =>
      process.exit(error.code === 'EPIPE' ? 0 : 1),
    );
  const { stdout } = output;
  try {
    const [first] = argv;
    if (first === undefined && stdout.isTTY) {
      const { printNextCommands } = await import('./commands/setup/next-commands.ts');
      await printNextCommands(await makeContext(parseCommandLine(['jobs']), output));
      return 0;
    }
    if (first === undefined || first === 'help' || first === '--help' || first === '-h') {
      const about = commandOf(argv[1] ?? '');
      stdout.write(about ? commandHelp(argv[1]!, about) : generalHelp());
      return 0;
    }
    if (first === '--version' || first === '-v' || first === 'version') {
      stdout.write(`${VERSION}\n`);
      return 0;
    }
    if (argv.includes('--help') || argv.includes('-h')) {
      const spec = commandOf(first);
      if (spec) {
        stdout.write(commandHelp(first, spec));
        return 0;
      }
    }
    const parsed = parseCommandLine(argv);
    const context = await makeContext(parsed, output);
    try {
      const command = await handlers[parsed.command]!(context);
      return exitCodeOf(await command(context));
    } finally {
      await context.threads?.close();
      await context.settings.traces?.close();
    }
  } catch (error) {
    return report(error, output.stderr);
  }
}

/** One sentence and what to do; a stack only for bugs, and only when asked for. */
function report(error: unknown, stderr: NodeJS.WritableStream): number {
  const wantsStack = process.env.SEINE_LOG === 'debug' && error instanceof Error;
  if (error instanceof SeineError) {
    print(stderr, `seine: ${hideCredentials(error.message)}${error.hint ? `\n  ${error.hint}` : ''}\n`);
    if (wantsStack) print(stderr, `${hideCredentials(stacksOf(error))}\n`);
    return exitCodeOf(error.exit);
  }
  const stack = wantsStack ? `\n${stacksOf(error)}` : '\n  set SEINE_LOG=debug and run again to see where';
  print(stderr, `seine: internal error: ${hideCredentials(messageOf(error) + stack)}\n`);
  return exitCodeOf('internal');
}

function stacksOf({ stack, cause }: Error): string {
  return cause instanceof Error ? `${stack}\ncaused by ${stacksOf(cause)}` : String(stack);
}
