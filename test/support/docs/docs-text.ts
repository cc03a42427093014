import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Reads the documentation as data: files, tables, links, and the interfaces it describes. */

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const isOurs = (path: string) => !/(^|\/)(node_modules|dist|results|\.[^/]+)(\/|$)/.test(path);

export const DOCS = ['.', 'docs', 'examples']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: folder !== '.', encoding: 'utf8' }).map((name) =>
      relative(ROOT, join(ROOT, folder, name)),
    ),
  )
  .filter((path) => path.endsWith('.md') && isOurs(path))
  .sort();
/** Other crawlers' options live in the benchmarks. */
export const ABOUT_SEINE = DOCS.filter((path) => path !== 'docs/benchmarks.md');

/** Rows of the tables of a text, as cells; `\|` is part of a cell. */
export function rowsOf(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(2, -2)
        .split(/(?<!\\) \| /)
        .map((cell) => cell.replaceAll('\\|', '|')),
    );
}

/** First cells that are code, of the tables between two markers. */
export function firstCells(path: string, section: string): string[] {
  const text = read(path).split(`<!-- ${section}:begin`)[1]!.split(`<!-- ${section}:end`)[0]!;
  return rowsOf(text)
    .map(([first]) => first!)
    .filter((cell) => cell.startsWith('`'))
    .map((cell) => cell.slice(1, -1));
}

export function leadsSomewhere(from: string, target: string): boolean {
  const [path, anchor] = target.split('#') as [string, string | undefined];
  const file = path === '' ? join(ROOT, from) : join(ROOT, dirname(from), path);
  if (!existsSync(file)) return false;
  if (anchor === undefined) return true;
  const anchors = [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replace(/\s/g, '-'),
  );
  return anchors.includes(anchor);
}

/** Names of the members of an interface, from its source. */
export function membersOf(name: string, path: string): string[] {
  const body = new RegExp(`export interface ${name} \\{([\\s\\S]*?)\\n\\}`).exec(read(path))?.[1];
  if (body === undefined) throw new Error(`${path} has no interface ${name}`);
  return [...body.matchAll(/^ {2}(\w+)\??[:(]/gm)].map(([, member]) => member!);
}

export function exportedFields(what: string): string[] {
  const row = rowsOf(read('docs/exports.md')).find(([first]) => first === `\`${what}\``);
  if (!row) throw new Error(`docs/exports.md does not explain --what ${what}`);
  return [...row[2]!.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
}
