import { readFileSync, writeFileSync } from 'node:fs';
import { COMMANDS, type CommandSpec, type OptionSpec } from '../../src/cli/specs/commands.ts';
import { SETTINGS } from '../../src/config/schema.ts';
import { EXIT_CODES } from '../../src/core/errors.ts';
import { FAILURES, SKIPS } from '../../src/core/failures.ts';
import { exampleOf, fieldsOf, OPERATIONS } from '../../src/server/api/openapi.ts';
import { PROBLEMS } from '../../src/server/api/requests/problems.ts';
import { comparePolicies } from '../../test/sim/revisits.ts';
import { readOptions } from '../read-options.ts';
import { fieldGroups } from './job-fields.ts';

/** The tables of docs/ that repeat tables of the code: `npx node scripts/docs/write-docs.ts`; a test compares. */

const BEGIN_NOTE = 'written by npx node scripts/docs/write-docs.ts';

/** By file, then by the name of the section. */
export const SECTIONS: Record<string, Record<string, () => string>> = {
  'docs/configuration.md': { settings: settingsTable },
  'docs/cli.md': { commands: commandSections },
  'docs/jobs.md': { fields: fieldTables },
  'docs/failure-codes.md': { failures: failureTable, skips: skipTable },
  'docs/exit-codes.md': { exits: exitTable },
  'docs/revisits.md': { revisits: revisitTable },
  'docs/api.md': { calls: callTable, options: optionTables, examples: callExamples, problems: problemTable },
};

/** The text with each of the file's sections made anew. Throws when a section has no place. */
export function withSections(path: string, text: string): string {
  let result = text;
  for (const [name, make] of Object.entries(SECTIONS[path] ?? {})) {
    const place = new RegExp(`(<!-- ${name}:begin[^>]*-->)[\\s\\S]*?(<!-- ${name}:end -->)`);
    if (!place.test(result)) throw new Error(`${path} has no place for ${name}`);
    const body = `<!-- ${name}:begin, ${BEGIN_NOTE} -->\n${make()}\n<!-- ${name}:end -->`;
    result = result.replace(place, () => body);
  }
  return result;
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map(cellText).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

/** Outside of code, `<` would begin an element. */
function cellText(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll('<', '&lt;')))
    .join('');
}

function revisitTable(): string {
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  const rows = [...comparePolicies(REVISIT_SEED)].map(([name, { visits, found, outdated }]) => [
    name,
    visits.toLocaleString('en-US'),
    percent(found),
    percent(outdated),
  ]);
  return table(['visits', 'number', 'changes found', 'time out of date'], rows);
}

/** Any other gives nearly the same table. */
const REVISIT_SEED = 3;

function callTable(): string {
  const rows = OPERATIONS.map(({ method, path, summary, scope }) => [
    `\`${method.toUpperCase()} ${path}\``,
    scope,
    summary,
  ]);
  return table(['call', 'scope', 'does'], rows);
}

function optionTables(): string {
  const shown = [
    'scrape',
    'batch',
    'forecast',
    'changeJob',
    'retryJob',
    'silenceAlerts',
    'createKey',
    'createWebhook',
  ];
  return OPERATIONS.filter(({ id }) => shown.includes(id))
    .map((operation) => {
      const title = `### ${operation.method.toUpperCase()} ${operation.path}`;
      const rows = fieldsOf(operation).map(([name, doc]) => [`\`${name}\``, doc]);
      return `${title}\n\n${table(['field', 'meaning'], rows)}`;
    })
    .join('\n\n');
}

function callExamples(): string {
  return OPERATIONS.map((operation) => `    # ${operation.summary}\n    ${exampleOf(operation)}`).join(
    '\n\n',
  );
}

function problemTable(): string {
  const rows = Object.entries(PROBLEMS).map(([code, { status, title, remedy }]) => [
    `\`${code}\``,
    String(status),
    title,
    remedy,
  ]);
  return table(['code', 'status', 'meaning', 'what to do'], rows);
}

function settingsTable(): string {
  const rows = Object.entries(SETTINGS).map(([name, { env, shown, doc }]) => {
    const flagged = Object.entries(COMMANDS).filter(([, { options }]) => name in options);
    const flag = flagged.length > 0 ? `\`--${name}\`` : 'none';
    return [`\`${name}\``, `\`${env}\``, flag, shown, doc];
  });
  return table(['setting', 'environment', 'option', 'default', 'meaning'], rows);
}

function optionShown(name: string, { kind, value, short }: OptionSpec): string {
  const shown = kind === 'flag' ? '' : kind === 'optional' ? `[=${value}]` : ` <${value}>`;
  return `\`${short ? `-${short}, ` : ''}--${name}${shown}\``;
}

function commandSection(name: string, spec: CommandSpec): string {
  const parts = [
    `### seine ${name}`,
    spec.summary,
    `    seine ${name} ${spec.args}${spec.args === '' ? '' : ' '}[options]`,
    ...(spec.details?.split('\n') ?? []),
    table(
      ['option', 'meaning'],
      Object.entries(spec.options).map(([option, entry]) => [optionShown(option, entry), entry.doc]),
    ),
    spec.examples.map((example) => `    ${example}`).join('\n'),
  ];
  return parts.join('\n\n');
}

function commandSections(): string {
  return Object.entries(COMMANDS)
    .map(([name, spec]) => commandSection(name, spec))
    .join('\n\n');
}

function fieldTables(): string {
  return fieldGroups()
    .map(({ title, fields }) =>
      [
        `### ${title}`,
        table(
          ['field', 'type', 'default', 'meaning'],
          fields.map(({ path, type, shownDefault, doc }) => [`\`${path}\``, type, shownDefault, doc]),
        ),
      ].join('\n\n'),
    )
    .join('\n\n');
}

function failureTable(): string {
  const rows = Object.entries(FAILURES).map(([code, { retry, hostFault, doc }]) => [
    `\`${code}\``,
    retry,
    hostFault ? 'yes' : 'no',
    doc,
  ]);
  return table(['code', 'retry', 'counts against the host', 'meaning'], rows);
}

function skipTable(): string {
  return table(
    ['code', 'meaning'],
    Object.entries(SKIPS).map(([code, doc]) => [`\`${code}\``, doc]),
  );
}

function exitTable(): string {
  const rows = Object.entries(EXIT_CODES).map(([name, { code, doc }]) => [String(code), name, doc]);
  return table(['code', 'name', 'meaning'], rows);
}

if (import.meta.main) {
  readOptions({
    start: 'npx node scripts/docs/write-docs.ts',
    about: 'Writes the tables of docs/ that repeat tables of the code.',
  });
  for (const path of Object.keys(SECTIONS))
    writeFileSync(path, withSections(path, readFileSync(path, 'utf8')));
}
