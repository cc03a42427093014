import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nextCommands } from '../../../src/cli/commands/setup/next-commands.ts';
import { TEMPLATES } from '../../../src/cli/commands/setup/templates.ts';
import { nextCommand, programName } from '../../../src/cli/program-name.ts';
import { COMMANDS } from '../../../src/cli/specs/commands.ts';
import { asItIs } from '../../../src/job-file/load-handlers.ts';
import { loadJobFile } from '../../../src/job-file/load-job-file.ts';
import { type ShopSite, startShopSite } from '../../../src/sites/shop/shop-site.ts';
import { seineHere } from '../../support/seine-in-process.ts';
import { temporaryFolder } from '../../support/seine-process.ts';
import { provideProgram } from '../../support/servers/provide-program.ts';

/** What a new user types first: a folder with a job in it, one page, the next command. */

const folder = temporaryFolder();
const at = (...parts: string[]) => join(folder.path, ...parts);
let shop: ShopSite;

beforeAll(async () => {
  shop = await startShopSite({ products: 8, delayScale: 0 });
});

afterAll(async () => {
  await shop.close();
  folder.remove();
});

describe('seine init', () => {
  test.each(Object.keys(TEMPLATES))('%s says the same in TypeScript and in YAML', async (kind) => {
    const [typescript, yaml] = [at(kind, 'ts'), at(kind, 'yaml')];
    const { name } = TEMPLATES[kind]!;
    const first = await seineHere('init', kind, '--into', typescript, '--json');
    expect(JSON.parse(first.stdout).written).toEqual(
      expect.arrayContaining([`${name}.ts`, 'tsconfig.json', 'README.md']),
    );
    await seineHere('init', kind, '--into', yaml, '--yaml');
    const text = readFileSync(join(yaml, `${name}.yaml`), 'utf8');
    const schema = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text)![1]!;
    expect(JSON.parse(readFileSync(join(yaml, schema), 'utf8')).title).toBe('Seine job');
    expect(readFileSync(join(yaml, 'README.md'), 'utf8').trim().split('\n')).toHaveLength(5);
    const { spec } = await loadJobFile(join(typescript, `${name}.ts`), asItIs);
    const other = await loadJobFile(join(yaml, `${name}.yaml`), asItIs);
    expect(JSON.stringify(other.spec).replaceAll(yaml, typescript)).toBe(JSON.stringify(spec));
  });

  test('overwrites nothing, and takes a site of the user', async () => {
    writeFileSync(at('README.md'), 'mine');
    const made = await seineHere('init', 'https://shop.example/a', '--into', folder.path);
    expect(made.stdout).toMatch(/^wrote shop\.ts, tsconfig\.json in .*\nkept README\.md as they were\n/);
    expect(readFileSync(at('README.md'), 'utf8')).toBe('mine');
    const { spec } = await loadJobFile(at('shop.ts'), asItIs);
    expect(spec).toMatchObject({ sources: ['https://shop.example/a'], allowPrivate: false });
    const again = await seineHere('init', 'shop', '--into', folder.path);
    expect(again).toMatchObject({ code: 2, stderr: expect.stringMatching(/shop\.ts exists already/) });
    const wrong = await seineHere('init', 'shp');
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/did you mean shop\?/) });
  });

  test('writes a job that runs as it is', async () => {
    const dir = at('runs');
    await seineHere('init', 'shop', '--into', dir);
    const file = join(dir, 'shop.ts');
    // The practice shop of this test has another port.
    writeFileSync(file, readFileSync(file, 'utf8').replace('http://127.0.0.1:8080/', shop.url));
    const run = await seineHere('run', file, '--dir', at('state'), '--json');
    expect(JSON.parse(run.stdout)).toMatchObject({ state: 'done', records: 8 });
    await seineHere('export', 'shop', '--dir', at('state'), '-o', at('out.jsonl'));
    expect(JSON.parse(readFileSync(at('out.jsonl'), 'utf8').split('\n')[0]!).data).toMatchObject({
      title: expect.any(String),
      price: { amount: expect.any(Number), currency: 'EUR' },
    });
  });
});

describe('seine try', () => {
  test('shows record, selectors, links and their reasons, and leaves nothing behind', async () => {
    const before = shop.log.length;
    const [path] = shop.expected.productPaths;
    const file = at('try.yaml');
    writeFileSync(
      file,
      `sources: ${shop.url}
routes: [{ name: product, match: /product/*, select: { title: h1, wrong: .skuu, card: { css: .product, fields: { price: .price } } } }]
follow: [{ match: /product/* }, { match: /admin/* }]
allowPrivate: true
`,
    );
    const url = `${shop.url.slice(0, -1)}${path}`;
    const tried = await seineHere('try', file, url, '--json', '--dir', at('unused'));
    const trial = JSON.parse(tried.stdout);
    expect(trial).toMatchObject({ url, state: 'done', httpStatus: 200, route: 'product' });
    expect(trial.selectors).toEqual([
      { field: 'title', selector: 'h1', matches: 1, first: trial.records[0].title },
      { field: 'wrong', selector: '.skuu', matches: 0, first: null },
      { field: 'card', selector: '.product', matches: 1, first: null },
      { field: 'card.price', selector: '.price', matches: 1, first: trial.records[0].card.price },
    ]);
    const reasons = new Map(
      trial.notFollowed.map((link: { url: string; reason: string }) => [link.url, link.reason]),
    );
    expect(reasons.get('mailto:hello@shop.invalid')).toBe('is not an http(s) URL');
    expect(reasons.get(`${shop.url}help`)).toBe('matches no pattern of a follow rule');
    expect(trial.followed).toContainEqual({ url: `${shop.url}admin/`, route: null, robots: 'forbidden' });
    expect(trial.followed.filter(({ robots }: { robots: string }) => robots === 'allowed')).not.toEqual([]);
    expect(shop.log.slice(before).map((entry) => entry.path)).toEqual(['/robots.txt', path]);
    expect(existsSync(at('unused'))).toBe(false);
  });

  test('says why a page was not fetched, as text', async () => {
    const { code, stdout } = await seineHere('try', `${shop.url}nothing`, '--allow-private');
    expect(stdout).toMatch(
      /^http:.*\/nothing\n {2}404, route none\n {2}dead: not-found: status 404\ntiming: /,
    );
    expect(code).toBe(3);
    writeFileSync(
      at('gone.yaml'),
      `sources: ${shop.url}\nroutes: [{ name: product, match: /product/*, select: { title: h1 } }]\nallowPrivate: true\n`,
    );
    const gone = await seineHere('try', at('gone.yaml'), `${shop.url}product/gone`);
    expect(gone.stdout).toMatch(/404, route product\n/);
    expect(await seineHere('try')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/nothing to try/),
    });
  });
});

describe('seine alone', () => {
  const last = { name: 'shop', isUnfinished: false, isAtWork: false, dead: 0, records: 5 };

  test.each([
    ['an empty folder', { files: [], last: null }, ['init shop', 'try https', 'run https']],
    ['a job file', { files: ['a.ts'], last: null }, ['try a.ts', 'run a.ts', 'run a.ts --dry-run']],
    [
      'a finished job',
      { files: ['a.ts'], last: { ...last, dead: 1 } },
      ['dead shop', 'export shop', 'refresh shop'],
    ],
    [
      'an unfinished job',
      { files: ['a.ts'], last: { ...last, isUnfinished: true } },
      ['resume shop', 'run a.ts', 'status shop'],
    ],
    [
      'a running job',
      { files: [], last: { ...last, isAtWork: true } },
      ['status shop', 'hosts shop', 'stop shop'],
    ],
  ])('in %s names three commands', (_, state, expected) => {
    const commands = nextCommands(state).map(({ command }) => command);
    expect(commands).toEqual(expected.map((start) => expect.stringContaining(`seine ${start}`)));
  });
});

describe('what is printed', () => {
  test('names commands as they were typed', () => {
    expect(programName({})).toBe('seine');
    expect(programName({ npm_command: 'exec', npm_lifecycle_script: "'seine'" })).toBe('npx seine');
    expect(programName({ npm_command: 'exec', npm_lifecycle_script: "'vitest'" })).toBe('seine');
    expect(programName({ npm_command: 'run', npm_lifecycle_event: 'nightly' })).toBe('npx seine');
    expect(programName({ npm_command: 'run-script' })).toBe('npx seine');
  });

  test('names a next command in the place that this one was told of, without passwords', () => {
    const next = (given: Record<string, string>) => nextCommand(given, 'dead shop', {});
    expect(next({})).toBe('seine dead shop');
    expect(next({ dir: '.seine/demo', rate: '4' })).toBe('seine dead shop --dir .seine/demo');
    expect(next({ dir: "it's here" })).toBe("seine dead shop --dir 'it'\\''s here'");
    expect(next({ store: 'postgres://me@db/seine' })).toBe('seine dead shop --store postgres://me@db/seine');
    expect(next({ store: 'postgres://me:secret@db/seine' })).toBe('seine dead shop');
  });

  test('doctor shows tables of numbers as the environment has them', async () => {
    const { stdout } = await seineHere('doctor', '--dir', at('doctor'));
    expect(stdout).toMatch(/\n {2}prices +lambdaCall=2e-7,.*machineHour=0 +\(default\)\n/);
    expect(stdout).not.toContain('object');
  });

  test('hosts says what stops the whole job', async () => {
    const dir = ['--dir', at('stopped')];
    await seineHere('run', shop.url, '--follow', '--allow-private', '--max-pages', '2', ...dir);
    const { stdout } = await seineHere('hosts', ...dir);
    expect(stdout).toMatch(/^127\.0\.0\.1-1 is stopped: .*2 pages.*\n127\.0\.0\.1:\d+ /);
  });
});

describe('seine completion', () => {
  const script = async (shell: string) => {
    const path = at(`completion.${shell}`);
    writeFileSync(path, (await seineHere('completion', shell)).stdout);
    return path;
  };

  test('completes commands, options and values in bash', async () => {
    const path = await script('bash');
    const complete = (...words: string[]) => {
      const list = words.map((word) => `'${word}'`).join(' ');
      const code = `source ${path}; COMP_WORDS=(seine ${list}); COMP_CWORD=${words.length}; _seine; echo "\${COMPREPLY[@]}"`;
      return execFileSync('bash', ['-c', code], { encoding: 'utf8', cwd: tmpdir() }).trim().split(' ');
    };
    expect(complete('ref')).toEqual(['refresh']);
    expect(complete('run', '--max-s')).toEqual(['--max-seconds']);
    expect(complete('export', '--format', '')).toEqual(['jsonl', 'csv', 'parquet']);
    expect(complete('completion', '')).toEqual(['--help', 'bash', 'zsh', 'fish']);
  });

  test('knows every command and option in all shells, and is read by each of them', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const path = await script(shell);
      const text = readFileSync(path, 'utf8');
      for (const [name, { options }] of Object.entries(COMMANDS))
        for (const word of [name, ...Object.keys(options)]) expect(text, shell).toContain(word);
      execFileSync(await provideProgram(shell, { package: shell }), ['-n', path]);
    }
    const code = `source ${at('completion.fish')}; complete -C 'seine ref'`;
    expect(execFileSync('fish', ['-c', code], { encoding: 'utf8' })).toMatch(/^refresh\t/);
  });
});
