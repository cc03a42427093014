import { parseArgs } from 'node:util';
import { messageOf, SeineError } from '../core/errors.ts';
import { suggestion } from '../core/text/nearest-name.ts';
import { getOwn } from '../core/values/own-property.ts';
import { COMMANDS, type CommandSpec, commandOf } from './specs/commands.ts';

export interface ParsedArgs {
  command: string;
  args: string[];
  /** Present only when given; flags are 'true'. */
  values: Record<string, string>;
  lists: Record<string, string[]>;
}

/** Reads a command line by the table of commands. Throws one clear sentence otherwise. */
export function parseCommandLine(argv: readonly string[]): ParsedArgs {
  const [command = 'help', ...rest] = argv;
  const spec = commandOf(command);
  if (!spec) {
    throw new SeineError(`unknown command '${command}'${suggestion(command, Object.keys(COMMANDS))}`, {
      hint: 'see `seine --help`',
    });
  }
  const { values, positionals } = readOptions(command, spec, rest);
  if (positionals.length > spec.argsMax) {
    throw new SeineError(
      `'seine ${command}' takes ${ARGUMENTS[spec.argsMax]}, got '${positionals.join(' ')}'`,
      {
        hint: `see \`seine ${command} --help\``,
      },
    );
  }
  const single: Record<string, string> = {};
  const lists: Record<string, string[]> = {};
  for (const [name, value] of Object.entries(values)) {
    if (Array.isArray(value)) lists[name] = value.map(String);
    else if (value !== undefined) single[name] = String(value);
  }
  return { command, args: positionals, values: single, lists };
}

const ARGUMENTS = ['no argument', 'one argument', 'two arguments', 'three arguments'];

/** Set before a number that looks like an option. */
const NEGATIVE = '\u0000';

/** Such as -1, -.5 or -3mb: no option is named like that. */
const LIKE_NEGATIVE = /^-\.?\d/;

/** The command line as Node's parser understands it. */
function toParse(spec: CommandSpec, rest: readonly string[]): string[] {
  const end = rest.indexOf('--');
  const args: string[] = [];
  let isValueNext = false;
  for (const [index, arg] of rest.entries()) {
    const isWord = end !== -1 && index > end;
    const option = !isWord && arg.startsWith('--') ? getOwn(spec.options, arg.slice(2)) : undefined;
    // Node takes it for an option, and the one before for one without its value.
    if (isValueNext && LIKE_NEGATIVE.test(arg)) args.push(`${args.pop()}=${arg}`);
    else if (!isWord && spec.takesNumbers && /^-\d+$/.test(arg)) args.push(NEGATIVE + arg);
    // A value is optional only in the form --name=value, so that the next argument stays an argument.
    else if (option?.kind === 'optional') args.push(`${arg}=${option.implied}`);
    else args.push(arg);
    isValueNext = option?.kind === 'value' || option?.kind === 'values';
  }
  return args;
}

function readOptions(command: string, spec: CommandSpec, rest: string[]) {
  const args = toParse(spec, rest);
  const options = Object.fromEntries(
    Object.entries(spec.options).map(([name, option]) => [
      name,
      {
        type: option.kind === 'flag' ? ('boolean' as const) : ('string' as const),
        multiple: option.kind === 'values',
        ...(option.short ? { short: option.short } : {}),
      },
    ]),
  );
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
    return { values, positionals: positionals.map((arg) => arg.replace(NEGATIVE, '')) };
  } catch (error) {
    throw new SeineError(explain(error, command, spec), { hint: `see \`seine ${command} --help\`` });
  }
}

function explain(error: unknown, command: string, spec: CommandSpec): string {
  const message = messageOf(error);
  const unknown = /Unknown option '(-{1,2}[^']+)'/.exec(message)?.[1];
  if (unknown) {
    const names = Object.keys(spec.options).map((name) => `--${name}`);
    return `unknown option ${unknown} for 'seine ${command}'${suggestion(unknown, names)}`;
  }
  const missing =
    /Option '(?:-\w, )?(--[\w-]+) <value>' argument missing/.exec(message)?.[1] ??
    /Option '(--[\w-]+)' argument is ambiguous/.exec(message)?.[1];
  if (missing) return `${missing} needs a value (${spec.options[missing.slice(2)]?.value})`;
  const extra = /Option '(?:-\w, )?(--[\w-]+)' does not take an argument/.exec(message)?.[1];
  if (extra) return `${extra} takes no value`;
  return message.split('\n')[0]!.replace(/\. To specify.*$/, '');
}
