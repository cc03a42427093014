import { EXIT_CODES } from '../core/errors.ts';
import { VERSION } from '../core/identity/identity.ts';
import { COMMANDS, type CommandSpec } from './specs/commands.ts';

export function generalHelp(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const commands = Object.entries(COMMANDS).map(([name, spec]) => `  ${name.padEnd(width)}  ${spec.summary}`);
  const exits = Object.entries(EXIT_CODES).map(
    ([, { code, doc }]) => `  ${String(code).padStart(3)}  ${doc}`,
  );
  return `seine ${VERSION}: scrape millions of URLs, politely, without losing one.

Usage: seine <command> [arguments] [options]

Commands:
${commands.join('\n')}

First steps:
  seine run https://example.com/ --follow --max-pages 100
  seine status
  seine export --what tasks

seine <command> --help shows the options and examples of a command.

Exit codes:
${exits.join('\n')}
`;
}

export function commandHelp(name: string, spec: CommandSpec): string {
  const options = Object.entries(spec.options).map(([option, { kind, value, short, doc }]) => {
    const shown = kind === 'flag' ? '' : kind === 'optional' ? `[=${value}]` : ` <${value}>`;
    return [`${short ? `-${short}, ` : ''}--${option}${shown}`, doc] as const;
  });
  const width = Math.max(...options.map(([shown]) => shown.length));
  return `${spec.summary}

Usage: seine ${name} ${spec.args}${spec.args ? ' ' : ''}[options]
${spec.details ? `\n${spec.details}\n` : ''}
Options:
${options.map(([shown, doc]) => `  ${shown.padEnd(width)}  ${doc}`).join('\n')}

Examples:
${spec.examples.map((example) => `  ${example}`).join('\n')}
`;
}
