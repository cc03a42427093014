import { SeineError } from '../../../core/errors.ts';
import { suggestion } from '../../../core/text/nearest-name.ts';
import type { Command } from '../../context.ts';
import { COMMANDS, type CommandSpec, type OptionSpec } from '../../specs/commands.ts';

/** Completions are made from the table of commands, so they know every option. Anything else is a file name. */

const SHELLS: Record<string, () => string> = { bash: bashScript, zsh: zshScript, fish: fishScript };

export const completionCommand: Command = async (context) => {
  const [shell = ''] = context.parsed.args;
  if (!Object.hasOwn(SHELLS, shell))
    throw new SeineError(
      shell === ''
        ? 'seine completion needs the name of a shell'
        : `there are no completions for '${shell}'${suggestion(shell, Object.keys(SHELLS))}`,
      { hint: `choose one of ${Object.keys(SHELLS).join(', ')}` },
    );
  context.stdout.write(SHELLS[shell]!());
  return 'success';
};

/** What an argument or option may be, where that is a list of words: `create|list|revoke`. */
function choicesIn(text: string | undefined): string[] {
  const first = /^\[?([\w-]+(?:\|[\w-]+)+)\]?(?:\s|$)/.exec(text ?? '')?.[1];
  if (first !== undefined) return first.split('|');
  return text === 'install' ? [text] : [];
}

const optionsOf = ({ options }: CommandSpec): [string, OptionSpec][] => Object.entries(options);
/** For the shells: single quotes, and none inside. */
const quoted = (text: string) => `'${text.replaceAll("'", '’')}'`;

function bashScript(): string {
  const commands = Object.entries(COMMANDS).map(([name, spec]) => {
    const words = [...optionsOf(spec).map(([option]) => `--${option}`), ...choicesIn(spec.args)];
    const files = spec.argsMax > 0 && choicesIn(spec.args).length === 0 ? ' files=yes' : '';
    return `    ${name}) words=${quoted(words.join(' '))}${files} ;;`;
  });
  const values = valueChoices().map(
    ([command, option, choices]) => `    ${command}:--${option}) values=${quoted(choices.join(' '))} ;;`,
  );
  const withValue = [
    ...new Set(
      Object.values(COMMANDS).flatMap((spec) =>
        optionsOf(spec)
          .filter(([, { kind }]) => kind === 'value' || kind === 'values')
          .map(([option]) => `--${option}`),
      ),
    ),
  ];
  return `# Completions of seine for bash: source <(seine completion bash)
_seine() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}" words='' values='' files=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=( $(compgen -W ${quoted([...Object.keys(COMMANDS), 'help'].join(' '))} -- "$current") )
    return
  fi
  case "$command:$previous" in
${values.join('\n')}
  esac
  if [ -n "$values" ]; then
    COMPREPLY=( $(compgen -W "$values" -- "$current") )
    return
  fi
  case "$previous" in
    ${withValue.join('|')}) COMPREPLY=( $(compgen -f -- "$current") ); return ;;
  esac
  case "$command" in
${commands.join('\n')}
    help) words=${quoted(Object.keys(COMMANDS).join(' '))} ;;
  esac
  COMPREPLY=( $(compgen -W "$words" -- "$current") )
  if [ -n "$files" ] && [ "\${current#-}" = "$current" ]; then COMPREPLY+=( $(compgen -f -- "$current") ); fi
}
complete -o filenames -o bashdefault -F _seine seine
`;
}

/** Options whose value is one of a few words. */
function valueChoices(): [command: string, option: string, choices: string[]][] {
  return Object.entries(COMMANDS).flatMap(([name, spec]) =>
    optionsOf(spec).flatMap(([option, { kind, value }]): [string, string, string[]][] => {
      const choices = choicesIn(value);
      return kind === 'flag' || kind === 'optional' || choices.length === 0 ? [] : [[name, option, choices]];
    }),
  );
}

/** In the words of \`_arguments\`: brackets and colons are its own. */
const zshText = (text: string) => text.replace(/[[\]:\\]/g, '\\$&').replaceAll("'", '’');

function zshScript(): string {
  const commands = Object.entries(COMMANDS).map(([name, { summary }]) => `    '${name}:${zshText(summary)}'`);
  const cases = Object.entries(COMMANDS).map(([name, spec]) => {
    const specs = optionsOf(spec).map(([option, { kind, value, doc }]) => {
      const choices = choicesIn(value);
      const action = choices.length > 0 ? `(${choices.join(' ')})` : '_files';
      const mark = kind === 'values' ? '*' : '';
      const take =
        kind === 'flag'
          ? ''
          : kind === 'optional'
            ? `=-:${option}:(${choices.join(' ')})`
            : `:${option}:${action}`;
      const form =
        kind === 'optional'
          ? `--${option}${take.slice(0, 2)}[${zshText(doc)}]${take.slice(2)}`
          : `${mark}--${option}[${zshText(doc)}]${take}`;
      return `        '${form}'`;
    });
    const words = choicesIn(spec.args);
    const rest = words.length > 0 ? `(${words.join(' ')})` : '_files';
    return `    ${name})\n      _arguments -s \\\n${[...specs, `        '*:argument:${rest}'`].join(' \\\n')}\n      ;;`;
  });
  return `#compdef seine
# Completions of seine for zsh: seine completion zsh > ~/.zfunc/_seine, with fpath+=(~/.zfunc) before compinit
_seine() {
  local -a commands
  commands=(
${commands.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join('\n')}
  esac
}
if [ "$funcstack[1]" = "_seine" ]; then _seine "$@"; else compdef _seine seine; fi
`;
}

function fishScript(): string {
  const line = (condition: string, rest: string) => `complete -c seine -n ${quoted(condition)} ${rest}`;
  const commands = Object.entries(COMMANDS).map(([name, { summary }]) =>
    line('__fish_use_subcommand', `-f -a ${name} -d ${quoted(summary)}`),
  );
  const options = Object.entries(COMMANDS).flatMap(([name, spec]) => {
    const seen = `__fish_seen_subcommand_from ${name}`;
    const words = choicesIn(spec.args);
    return [
      ...(words.length > 0 ? [line(seen, `-a ${quoted(words.join(' '))}`)] : []),
      ...optionsOf(spec).map(([option, { kind, value, doc, short }]) => {
        const choices = choicesIn(value);
        const take =
          kind === 'flag' || kind === 'optional'
            ? ''
            : choices.length > 0
              ? ` -x -a ${quoted(choices.join(' '))}`
              : ' -r';
        return line(seen, `-l ${option}${short ? ` -s ${short}` : ''}${take} -d ${quoted(doc)}`);
      }),
    ];
  });
  return `# Completions of seine for fish: seine completion fish > ~/.config/fish/completions/seine.fish\n${[...commands, ...options].join('\n')}\n`;
}
