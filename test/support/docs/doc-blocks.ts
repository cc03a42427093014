import { read } from './docs-text.ts';

/**
 * Fenced blocks of a page as steps of a scenario. What follows the language says what a block is:
 *
 *   sh                    commands, run in the order of the page
 *   sh other-terminal     a command that keeps running
 *   sh fails              commands of which one has to fail
 *   sh needs AWS          commands that need a foreign service, and are not run
 *   yaml shop.yaml        a file, written before what comes after it
 */
export type DocBlock = {
  /** Of the page; 1-based, of its first line of content. */
  line: number;
  /** The heading (`##`) above it; empty before the first one. */
  section: string;
  text: string;
} & (
  | { kind: 'commands'; mayFail: boolean }
  | { kind: 'background' }
  | { kind: 'foreign'; service: string }
  | { kind: 'file'; name: string }
);

/** What no machine has by itself. */
const FOREIGN = ['AWS', 'Docker', 'Kubernetes', 'npm', 'minutes', 'a model'];

const FENCE = /^```(\w*)[ ]?(.*)\n([\s\S]*?)^```$/gm;

export function blocksOf(path: string): DocBlock[] {
  const text = read(path);
  return [...text.matchAll(FENCE)].flatMap((match): DocBlock[] => {
    const [, language, info = '', body = ''] = match;
    const before = text.slice(0, match.index);
    const place = {
      line: before.split('\n').length + 1,
      section: [...before.matchAll(/^## (.*)$/gm)].at(-1)?.[1] ?? '',
      text: body,
    };
    if (language !== 'sh') return info === '' ? [] : [{ ...place, kind: 'file', name: info }];
    if (info === '') return [{ ...place, kind: 'commands', mayFail: false }];
    if (info === 'fails') return [{ ...place, kind: 'commands', mayFail: true }];
    if (info === 'other-terminal') return [{ ...place, kind: 'background' }];
    const service = /^needs (.+)$/.exec(info)?.[1];
    if (service !== undefined && FOREIGN.includes(service)) return [{ ...place, kind: 'foreign', service }];
    throw new Error(`${path}:${place.line}: no such kind of block: sh ${info}`);
  });
}
