import { messageOf, SeineError } from '../core/errors.ts';
import { VERSION } from '../core/identity/identity.ts';
import { hideCredentials } from '../core/text/redact.ts';
import { type Command, exitCodeOf, makeContext, type Output, print } from './context.ts';
import { commandHelp, generalHelp } from './help.ts';
import { parseCommandLine } from './parse-args.ts';
import { commandOf } from './specs/commands.ts';

/** Each command loads only what it needs: `seine status` should not wait for the parts of a crawler. */
const HANDLERS: Record<string, () => Promise<Command>> = {
  init: async () => (await import('./commands/setup/init.ts')).initCommand,
  try: async () => (await import('./commands/pages/try.ts')).tryCommand,
  run: async () => (await import('./commands/run/run.ts')).runCommand,
  forecast: async () => (await import('./commands/run/forecast.ts')).forecastCommand,
  resume: async () => (await import('./commands/run/run.ts')).resumeCommand,
  refresh: async () => (await import('./commands/run/refresh.ts')).refreshCommand,
  ui: async () => (await import('./commands/server/ui.ts')).uiCommand,
  serve: async () => (await import('./commands/server/serve.ts')).serveCommand,
  worker: async () => (await import('./commands/fleet/worker.ts')).workerCommand,
  drain: async () => (await import('./commands/fleet/drain.ts')).drainCommand,
  workers: async () => (await import('./commands/fleet/workers.ts')).workersCommand,
  'fleet-key': async () => (await import('./commands/fleet/fleet-key.ts')).fleetKeyCommand,
  keys: async () => (await import('./commands/server/keys.ts')).keysCommand,
  mcp: async () => (await import('./commands/server/mcp.ts')).mcpCommand,
  lambda: async () => (await import('./lambda/lambda.ts')).lambdaCommand,
  status: async () => (await import('./commands/jobs/reports.ts')).statusCommand,
  explain: async () => (await import('./commands/jobs/explain.ts')).explainCommand,
  receipt: async () => (await import('./commands/jobs/receipt.ts')).receiptCommand,
  top: async () => (await import('./commands/run/top.ts')).topCommand,
  hosts: async () => (await import('./commands/jobs/hosts.ts')).hostsCommand,
  calibrate: async () => (await import('./commands/run/calibrate.ts')).calibrateCommand,
  verify: async () => (await import('./export/verify.ts')).verifyCommand,
  proxies: async () => (await import('./commands/jobs/proxies.ts')).proxiesCommand,
  jobs: async () => (await import('./commands/jobs/reports.ts')).jobsCommand,
  stop: async () => (await import('./commands/jobs/reports.ts')).stopCommand,
  cancel: async () => (await import('./commands/jobs/reports.ts')).cancelCommand,
  add: async () => (await import('./commands/run/add.ts')).addCommand,
  priority: async () => (await import('./commands/jobs/priority.ts')).priorityCommand,
  dead: async () => (await import('./commands/jobs/reports.ts')).deadCommand,
  export: async () => (await import('./export/export.ts')).exportCommand,
  reparse: async () => (await import('./commands/pages/reparse.ts')).reparseCommand,
  learn: async () => (await import('./commands/pages/learn.ts')).learnCommand,
  repair: async () => (await import('./commands/pages/repair.ts')).repairCommand,
  test: async () => (await import('./commands/pages/test.ts')).testCommand,
  sheet: async () => (await import('./commands/pages/sheet.ts')).sheetCommand,
  page: async () => (await import('./commands/pages/page.ts')).pageCommand,
  doctor: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  hostile: async () => (await import('./commands/setup/hostile.ts')).hostileCommand,
  shop: async () => (await import('./commands/setup/shop.ts')).shopCommand,
  browser: async () => (await import('./commands/setup/browser.ts')).browserCommand,
  schema: async () => (await import('./commands/setup/schema.ts')).schemaCommand,
  completion: async () => (await import('./commands/setup/completion.ts')).completionCommand,
};

/** Runs one command line and returns its exit code. */
export async function main(argv: readonly string[], output: Output = process): Promise<number> {
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
    const command = await HANDLERS[parsed.command]!();
    const context = await makeContext(parsed, output);
    try {
      return exitCodeOf(await command(context));
    } finally {
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
