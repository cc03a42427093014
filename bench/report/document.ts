/**
 * docs/benchmarks.md: each scenario owns what stands between its two markers; everything else is written by hand
 * and survives. The README has the most important figures of one of them.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BENCH_FOLDER, ROOT_FOLDER } from '../contenders/contender.ts';

const DOCUMENT = join(ROOT_FOLDER, 'docs', 'benchmarks.md');
const README = join(ROOT_FOLDER, 'README.md');
const RESULTS = join(BENCH_FOLDER, 'results', 'latest.json');

function replaceSection(text: string, name: string, section: string): string {
  const begin = `<!-- ${name}:begin, written by npm run bench -->`;
  const end = `<!-- ${name}:end -->`;
  const block = `${begin}\n${section.trim()}\n${end}`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from === -1 || to < from) return `${text.trimEnd()}\n\n## ${name}\n\n${block}\n`;
  return text.slice(0, from) + block + text.slice(to + end.length);
}

/** What an earlier run has left of a scenario. */
export function readResult<T>(name: string): T | undefined {
  if (!existsSync(RESULTS)) return undefined;
  return (JSON.parse(readFileSync(RESULTS, 'utf8')) as Record<string, T>)[name];
}

export function writeScenario(
  name: string,
  result: { section: string; data: unknown; readme?: string; files?: Record<string, string> },
): void {
  const text = existsSync(DOCUMENT) ? readFileSync(DOCUMENT, 'utf8') : '# Benchmarks\n';
  mkdirSync(dirname(DOCUMENT), { recursive: true });
  writeFileSync(DOCUMENT, replaceSection(text, name, result.section));
  if (result.readme !== undefined)
    writeFileSync(README, replaceSection(readFileSync(README, 'utf8'), 'bench', result.readme));
  for (const [file, content] of Object.entries(result.files ?? {})) {
    writeFileSync(join(dirname(DOCUMENT), file), content);
  }
  mkdirSync(dirname(RESULTS), { recursive: true });
  const before = existsSync(RESULTS) ? (JSON.parse(readFileSync(RESULTS, 'utf8')) as object) : {};
  writeFileSync(RESULTS, `${JSON.stringify({ ...before, [name]: result.data }, null, 1)}\n`);
}
