import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseOptions } from '../../../scripts/read-options.ts';

const COMMAND = {
  start: 'npm run try --',
  about: 'Tries something.',
  words: { shown: 'part', known: ['first', 'second'], max: 1 },
  options: {
    runs: { count: 10, does: 'how often' },
    seed: { number: null, shown: 'a new one', does: 'repeats a run' },
    mode: { oneOf: ['both', 'links'], does: 'what to do' },
    only: { text: '', does: 'names' },
    write: { flag: true, does: 'put it into the docs' },
  },
} as const;

const read = (...argv: string[]) => parseOptions(COMMAND, argv);

describe('the command line of a script', () => {
  test('has defaults, and typed values', () => {
    const values = { runs: 10, seed: null, mode: 'both', only: '', write: false };
    expect(read()).toEqual({ values, words: [] });
    expect(read('first', '--runs', '3', '--seed=0', '--mode', 'links', '--only', 'a,b', '--write')).toEqual({
      values: { runs: 3, seed: 0, mode: 'links', only: 'a,b', write: true },
      words: ['first'],
    });
  });

  test.each([
    [['--run', '3'], 'unknown option --run; did you mean --runs? (--help lists all)'],
    [['--toString'], 'unknown option --toString (--help lists all)'],
    [['-x'], 'unknown option -x (--help lists all)'],
    [['--runs', '0'], '--runs needs a whole number above 0'],
    [['--runs', '1.5'], '--runs needs a whole number above 0'],
    [['--runs', '--write'], '--runs needs a whole number above 0'],
    [['--runs='], '--runs needs a whole number above 0'],
    [['--seed', 'x'], '--seed needs a number of 0 or more'],
    [['--mode', 'all'], '--mode is one of both, links'],
    [['--only'], '--only needs a value'],
    [['--write=yes'], '--write takes no value'],
    [['third'], "unknown part 'third'; there are first, second"],
    [['first', 'second'], "unexpected 'second' (--help lists what is understood)"],
  ])('%j is refused in one sentence', (argv, problem) => {
    expect(read(...argv)).toEqual({ problem });
  });

  test.each(['--help', '-h'])('%s wins, and lists every option with its default', (help) => {
    expect(read('--runs', '5', help)).toEqual({
      help: [
        'npm run try -- [part] [options]',
        '',
        'Tries something.',
        '',
        'part: first, second',
        '',
        '  --runs <n>           how often (10)',
        '  --seed <n>           repeats a run (a new one)',
        '  --mode <both|links>  what to do (both)',
        '  --only <text>        names',
        '  --write              put it into the docs',
        '  --help               show this',
        '',
      ].join('\n'),
    });
  });

  test('is read in one place', () => {
    const root = join(import.meta.dirname, '../../..');
    const starts = ['scripts', 'bench', 'fuzz']
      .flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(
          (name) => `${folder}/${name}`,
        ),
      )
      // Programs that a benchmark starts get what they need in a fixed order.
      .filter((path) => path.endsWith('.ts') && !/node_modules|-child\.ts$|\/origin\.ts$/.test(path));
    const own = starts.filter((path) =>
      /parseArgs|process\.argv/.test(readFileSync(join(root, path), 'utf8')),
    );
    // What `npm test` is given goes to vitest.
    expect(own).toEqual(['scripts/read-options.ts', 'scripts/test.ts']);
  });
});
