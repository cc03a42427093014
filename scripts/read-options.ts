import { parseArgs } from 'node:util';
import { suggestion } from '../src/core/text/nearest-name.ts';

/** The command line of a script: options with their defaults, `--help`, and one sentence for what it does not know. */

/** What follows its name, with the default; null where there is none. */
type Kind =
  | { flag: true }
  /** A whole number above 0. */
  | { count: number | null }
  /** 0 or more. */
  | { number: number | null }
  | { text: string | null }
  /** The first is the default. */
  | { oneOf: readonly string[] };

type Option = Kind & {
  does: string;
  /** Where the default is not what to show. */
  shown?: string;
};

interface Command {
  /** How it is started, such as `npm run sim --`. */
  start: string;
  /** What it does: lines of text. */
  about: string;
  options?: Record<string, Option>;
  /** Words beside the options; none where this is missing. */
  words?: { shown: string; known?: readonly string[]; max?: number };
}

type ValueOf<O> = O extends { flag: true }
  ? boolean
  : O extends { oneOf: readonly (infer Choice)[] }
    ? Choice
    : O extends { count: infer Default } | { number: infer Default }
      ? number | Extract<Default, null>
      : O extends { text: infer Default }
        ? string | Extract<Default, null>
        : never;

type Values<C extends Command> = { [Name in keyof C['options']]: ValueOf<C['options'][Name]> };

/** What the command line of this process says. Ends the process where it asks for help or makes no sense. */
export function readOptions<const C extends Command>(command: C): { values: Values<C>; words: string[] } {
  const read = parseOptions(command, process.argv.slice(2));
  if ('help' in read) {
    process.stdout.write(read.help);
    process.exit(0);
  }
  if ('problem' in read) {
    process.stderr.write(`${read.problem}\n`);
    process.exit(2);
  }
  return read;
}

type Read<C extends Command> =
  | { values: Values<C>; words: string[] }
  | { help: string }
  | { problem: string };

export function parseOptions<const C extends Command>(command: C, argv: readonly string[]): Read<C> {
  const options: Record<string, Option> = command.options ?? {};
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      Object.entries(options).map(([name, option]) => [
        name,
        { type: 'flag' in option ? ('boolean' as const) : ('string' as const) },
      ]),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const values: Record<string, unknown> = Object.fromEntries(
    Object.entries(options).map(([name, option]) => [name, defaultOf(option)]),
  );
  const words: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    if (rawName === '--help' || rawName === '-h') return { help: helpOf(command) };
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (!option) {
      const known = [...Object.keys(options), 'help'].map((each) => `--${each}`);
      return { problem: `unknown option ${rawName}${suggestion(rawName, known)} (--help lists all)` };
    }
    const isNextOption = !token.inlineValue && value?.startsWith('--') === true;
    const read = readValue(option, isNextOption ? undefined : value);
    if ('needs' in read) return { problem: `--${name} ${read.needs}` };
    values[name] = read.value;
  }
  const problem = problemOf(words, command);
  return problem === null ? { values: values as Values<C>, words } : { problem };
}

function defaultOf(option: Option): unknown {
  if ('flag' in option) return false;
  if ('oneOf' in option) return option.oneOf[0];
  if ('count' in option) return option.count;
  return 'number' in option ? option.number : option.text;
}

function readValue(option: Option, text: string | undefined): { value: unknown } | { needs: string } {
  if ('flag' in option) return text === undefined ? { value: true } : { needs: 'takes no value' };
  if ('oneOf' in option) {
    const isKnown = text !== undefined && option.oneOf.includes(text);
    return isKnown ? { value: text } : { needs: `is one of ${option.oneOf.join(', ')}` };
  }
  if ('text' in option) return text === undefined ? { needs: 'needs a value' } : { value: text };
  const value = text === undefined || text.trim() === '' ? Number.NaN : Number(text);
  if ('number' in option)
    return value >= 0 && Number.isFinite(value) ? { value } : { needs: 'needs a number of 0 or more' };
  return Number.isSafeInteger(value) && value > 0 ? { value } : { needs: 'needs a whole number above 0' };
}

function problemOf(words: readonly string[], { words: taken }: Command): string | null {
  const extra = words[taken ? (taken.max ?? Number.POSITIVE_INFINITY) : 0];
  if (extra !== undefined) return `unexpected '${extra}' (--help lists what is understood)`;
  const unknown = words.find((word) => taken?.known?.includes(word) === false);
  if (unknown === undefined) return null;
  return `unknown ${taken!.shown} '${unknown}'; there are ${taken!.known!.join(', ')}`;
}

function helpOf({ start, about, options = {}, words }: Command): string {
  const shown = Object.entries(options).map(([name, option]) => ({
    name: `--${name}${placeholderOf(option)}`,
    text: `${option.does}${defaultText(option)}`,
  }));
  const width = Math.max(6, ...shown.map(({ name }) => name.length));
  const taken = words ? ` [${words.shown}${words.max === 1 ? '' : ' …'}]` : '';
  return [
    `${start}${taken} [options]`,
    '',
    about,
    '',
    ...(words?.known ? [`${words.shown}: ${words.known.join(', ')}`, ''] : []),
    ...[...shown, { name: '--help', text: 'show this' }].map(
      ({ name, text }) => `  ${name.padEnd(width)}  ${text}`,
    ),
    '',
  ].join('\n');
}

function placeholderOf(option: Option): string {
  if ('flag' in option) return '';
  if ('oneOf' in option) return ` <${option.oneOf.join('|')}>`;
  return 'text' in option ? ' <text>' : ' <n>';
}

function defaultText(option: Option): string {
  const text = option.shown ?? ('flag' in option ? '' : String(defaultOf(option) ?? ''));
  return text === '' ? '' : ` (${text})`;
}
