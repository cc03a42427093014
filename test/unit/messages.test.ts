import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { jobFields } from '../../scripts/docs/job-fields.ts';
import { COMMANDS } from '../../src/cli/specs/commands.ts';
import { SETTINGS } from '../../src/config/schema.ts';
import { EXIT_CODES } from '../../src/core/errors.ts';
import { FAILURES, SKIPS } from '../../src/core/failures.ts';

/** One style for what users read. Messages begin in lower case and have no full stop; descriptions are sentences. */

const ROOT = fileURLToPath(new URL('../../src', import.meta.url));
/** The emulator of Lambda and the test sites answer in the words of others. */
const FOREIGN = /^(demo|hostile)\/|^cli\/lambda\/(emulator|environment|function-registry|role-book)\.ts$/;

/** Where a message, its hint or the detail of a failure begins. */
const OPENERS =
  /\bnew SeineError\(|\bnew ValidationError\(|\.(?:warn|info)\(|\b(?:say|fail)\(|\b(?:hint|detail|says)(?::|\s=)(?:\s\(\w*\) =>)?|\breturn \[/g;

/** Names that keep their capital at the start; so do acronyms and environment variables. */
const NAMES = /^(Chromium|Lambda|Parquet|Playwright|PostgreSQL|Redis|Seine|Content-Length|[A-Z][A-Z0-9_]+)\b/;

interface Message {
  place: string;
  text: string;
}

/** The end of the literal that begins at `at`: templates may hold expressions with literals of their own. */
function literalEnd(code: string, at: number): number {
  const quote = code[at];
  for (let i = at + 1; i < code.length; i++) {
    if (code[i] === '\\') i++;
    else if (code[i] === quote) return i + 1;
    else if (quote === '`' && code.startsWith('${', i)) i = expressionEnd(code, i + 2, () => {});
  }
  // A quote in a regular expression is no literal.
  return at + 1;
}

/** The end of the expression that begins at `at`, with each literal that its value may begin with. */
function expressionEnd(code: string, at: number, found: (text: string) => void): number {
  let depth = 0;
  let before = '(';
  for (let i = at; i < code.length; i++) {
    const char = code[i]!;
    if (/\s/.test(char)) continue;
    if (/['"`]/.test(char)) {
      const end = literalEnd(code, i);
      if (depth === 0 && /[(?:|]/.test(before)) found(code.slice(i + 1, end - 1));
      i = end - 1;
    } else if (/[([{]/.test(char)) depth++;
    else if (depth > 0 && /[)\]}]/.test(char)) depth--;
    else if (depth === 0 && /[,;)\]}]/.test(char)) return i;
    before = char;
  }
  return code.length;
}

function messagesOf(path: string): Message[] {
  const code = readFileSync(`${ROOT}/${path}`, 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '');
  return [...code.matchAll(OPENERS)].flatMap(({ index, 0: opener }) => {
    const found: Message[] = [];
    const place = `${path}: ${opener}`;
    expressionEnd(code, index + opener.length, (text) => {
      // A single word is a code or a label.
      if (/\s/.test(text)) found.push({ place, text });
    });
    return found;
  });
}

const MESSAGES = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !FOREIGN.test(path))
  .sort()
  .flatMap(messagesOf);

const shown = ({ place, text }: Message) => `${place} ${text}`;

describe('messages, hints and details', () => {
  test('are found in the sources', () => {
    const errors = MESSAGES.filter(({ place }) => place.endsWith('new SeineError('));
    expect(errors.length).toBeGreaterThan(150);
    expect(MESSAGES.filter(({ place }) => place.endsWith('hint:')).length).toBeGreaterThan(100);
    expect(errors.map(({ text }) => text)).toContain('nothing to run');
  });

  test('begin in lower case, unless with a name', () => {
    expect(MESSAGES.filter(({ text }) => /^[A-Z]/.test(text) && !NAMES.test(text)).map(shown)).toEqual([]);
  });

  test('have no full stop at the end', () => {
    expect(MESSAGES.filter(({ text }) => /[.!]$/.test(text)).map(shown)).toEqual([]);
  });
});

describe('descriptions', () => {
  const docs: Message[] = [
    ...Object.entries(COMMANDS).flatMap(([name, { summary, details, options }]) => [
      { place: `seine ${name}`, text: summary },
      ...(details === undefined ? [] : [{ place: `seine ${name}, details`, text: details }]),
      ...Object.entries(options).map(([option, { doc }]) => ({
        place: `seine ${name} --${option}`,
        text: doc,
      })),
    ]),
    ...Object.entries(SETTINGS).map(([place, { doc }]) => ({ place, text: doc })),
    ...Object.entries(FAILURES).map(([place, { doc }]) => ({ place, text: doc })),
    ...Object.entries(EXIT_CODES).map(([place, { doc }]) => ({ place, text: doc })),
    ...Object.entries(SKIPS).map(([place, text]) => ({ place, text })),
    ...jobFields().map(({ path, doc }) => ({ place: path, text: doc })),
  ];

  test('are sentences, and an option may end with its default', () => {
    // The options of `seine lambda` begin with the verbs that they belong to.
    const sentence = /^([A-Z`]|robots\.txt|sitemap:|(build|deploy|local|warm)[,:]).*(\.|Default: .*[^.])$/s;
    expect(docs.filter(({ text }) => !sentence.test(text)).map(shown)).toEqual([]);
  });

  test.each(['to be had', 'who asks', 'is counted by', 'be let in', 'nobody', 'along', 'anew'])(
    'and messages do not say "%s"',
    (phrase) => {
      const said = new RegExp(`\\b${phrase}\\b`);
      expect([...docs, ...MESSAGES].filter(({ text }) => said.test(text)).map(shown)).toEqual([]);
    },
  );
});
