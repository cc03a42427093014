import type { AppSettings } from '../app/app.ts';
import type { EarlyThreads } from '../app/early-threads.ts';
import { type Folder, openFolder } from '../app/folder.ts';
import {
  browserOf,
  callbacksOf,
  type LoadedConfig,
  lambdaOf,
  loadSettings,
  s3Of,
  storeOf,
  threadsOf,
  traceSettings,
} from '../config/load.ts';
import { SETTINGS, type SettingName } from '../config/schema.ts';
import { EXIT_CODES, type ExitName } from '../core/errors.ts';
import type { DispatchTarget } from '../core/job-schema/dispatch-target.ts';
import { makeJsonLogger, makeTextLogger } from '../observe/logs/logger.ts';
import { openRotatingFile } from '../observe/logs/rotating-file.ts';
import type { Logger } from '../ports/ambient.ts';
import type { TraceSink } from '../ports/trace-sink.ts';
import { cleanLines } from '../tui/text.ts';
import type { ParsedArgs } from './parse-args.ts';
import { commandOf } from './specs/commands.ts';

/** What every command gets. */
export interface Context {
  /** Where lines go that must not be drawn over; set while a dashboard is on the screen. */
  screen: Screen;
  parsed: ParsedArgs;
  loaded: LoadedConfig;
  settings: AppSettings;
  /** Of a run, where they were started before its command was loaded. */
  threads?: EarlyThreads;
  json: boolean;
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
}

interface Screen {
  print: ((text: string) => void) | null;
}

export type Command = (context: Context) => Promise<ExitName>;

/** Where a command writes: the process itself, but for tests. */
export type Output = Pick<Context, 'stdout' | 'stderr'>;

export async function makeContext(parsed: ParsedArgs, output: Output = process): Promise<Context> {
  // A flag without a value is no setting, though it may have the name of one.
  const options = commandOf(parsed.command)?.options ?? {};
  const flags = Object.fromEntries(
    Object.entries(parsed.values).filter(([name]) => name in SETTINGS && options[name]?.kind === 'value'),
  );
  const loaded = await loadSettings(flags as Partial<Record<SettingName, string>>);
  const { dir, blobs, dispatch, fleetKey, sync, allowPrivate } = loaded.config;
  const { stdout, stderr } = output;
  const screen: Screen = { print: null };
  const logger = loggerOf(loaded.config, (text) =>
    screen.print ? screen.print(text) : void stderr.write(text),
  );
  return {
    parsed,
    screen,
    loaded,
    settings: {
      dir,
      blobs,
      ...threadsOf(loaded.config),
      dispatch,
      fleetKeys: fleetKey ?? [],
      lambda: lambdaOf(loaded.config),
      browser: browserOf(loaded.config),
      apiCallbacks: callbacksOf(loaded.config),
      sync,
      prices: loaded.config.prices,
      hostLogDays: loaded.config.hostLogDays,
      allowPrivate,
      readSecret: loaded.readSecret,
      proxyPools: loaded.config.proxyPools,
      jobEnvironment: loaded.jobEnvironment,
      jobCommands: loaded.config.jobCommands ?? undefined,
      s3: s3Of(loaded.config),
      store: storeOf(loaded.config),
      logger,
      traces: await openTraces(parsed.command, dispatch, logger),
    },
    json: parsed.values.json === 'true',
    stdout,
    stderr,
  };
}

const TRANSPORTS = { threads: 'threads', bullmq: 'bullmq', lambda: 'aws_lambda' } as const;
/** Commands that coordinate jobs. */
const TRACED = new Set(['run', 'resume', 'refresh', 'serve', 'watch']);

/** Loaded only when the environment asks for traces. */
async function openTraces(
  command: string,
  dispatch: readonly DispatchTarget[],
  logger: Logger,
): Promise<TraceSink | undefined> {
  const traces = TRACED.has(command) ? traceSettings() : null;
  if (!traces) return undefined;
  const { OtlpExporter } = await import('../observe/traces/otlp-exporter.ts');
  const transport = dispatch.length === 1 ? TRANSPORTS[dispatch[0]!.kind] : 'mixed';
  return new OtlpExporter({ ...traces, transport, logger });
}

/** Opens the folder of existing jobs for one command. */
export async function withFolder<T>(context: Context, work: (folder: Folder) => Promise<T>): Promise<T> {
  const folder = await openFolder(context.settings, { create: false });
  try {
    return await work(folder);
  } finally {
    await folder.close();
  }
}

/** Remote text never controls the terminal. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');
}

/** For all text that people read: names, messages and details come from sites and files. */
export function print(stream: NodeJS.WritableStream, text: string): void {
  stream.write(cleanLines(text));
}

/** JSON escapes control characters, but for those above 0x7e. */
export function printJson(context: { stdout: NodeJS.WritableStream }, value: unknown): void {
  const json = JSON.stringify(value).replace(/[\u007f-\u009f]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  context.stdout.write(`${json}\n`);
}

export function exitCodeOf(name: ExitName): number {
  return EXIT_CODES[name].code;
}

function loggerOf(
  { log, logFormat, logFile }: LoadedConfig['config'],
  toScreen: (text: string) => void,
): Logger {
  const write = logFile === null ? toScreen : openRotatingFile(logFile, { elsewhere: toScreen });
  const options = { level: log, write, now: Date.now };
  return logFormat === 'json' ? makeJsonLogger(options) : makeTextLogger(options);
}
