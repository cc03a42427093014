import { describe, expect, test } from 'vitest';
import { commandHelp, generalHelp } from '../../../src/cli/help.ts';
import { parseCommandLine } from '../../../src/cli/parse-args.ts';
import { COMMANDS } from '../../../src/cli/specs/commands.ts';
import { SETTINGS } from '../../../src/config/schema.ts';
import { EXIT_CODES, SeineError } from '../../../src/core/errors.ts';

const parse = (line: string) => parseCommandLine(line.split(' '));
function messageOf(argv: string[]): string {
  try {
    parseCommandLine(argv);
  } catch (error) {
    expect(error).toBeInstanceOf(SeineError);
    expect((error as SeineError).exit).toBe('bad-input');
    return (error as SeineError).message;
  }
  return 'no error';
}

describe('command lines', () => {
  test('arguments, values, flags and lists', () => {
    expect(
      parse('run https://a.example/ --max-pages 5 --rate=max --select a=h1 --json --select b=.x@href'),
    ).toEqual({
      command: 'run',
      args: ['https://a.example/'],
      values: { 'max-pages': '5', rate: 'max', json: 'true' },
      lists: { select: ['a=h1', 'b=.x@href'] },
    });
  });

  test('an optional value is taken only with =, so that what follows stays an argument', () => {
    expect(parse('run --follow https://a.example/')).toMatchObject({
      args: ['https://a.example/'],
      values: { follow: 'host' },
    });
    expect(parse('run --follow=site https://a.example/')).toMatchObject({ values: { follow: 'site' } });
    expect(parse('run https://a.example/ --follow').values.follow).toBe('host');
  });

  test('- is an argument, and after -- everything is', () => {
    expect(parse('run - --name x')).toMatchObject({ args: ['-'], values: { name: 'x' } });
    expect(parse('run -- --odd-name.txt').args).toEqual(['--odd-name.txt']);
    expect(parse('run -- --follow').args).toEqual(['--follow']);
  });

  test('a negative number is the value of the option before it, as after =', () => {
    expect(parse('add shop u --priority -3')).toMatchObject({
      args: ['shop', 'u'],
      values: { priority: '-3' },
    });
    expect(parse('priority shop /a -5').args).toEqual(['shop', '/a', '-5']);
    for (const [command, { options }] of Object.entries(COMMANDS))
      for (const [name, { kind }] of Object.entries(options))
        if (kind === 'value' || kind === 'values')
          for (const value of ['-1', '-.5', '-2mb'])
            expect(parse(`${command} --${name} ${value}`)).toEqual(parse(`${command} --${name}=${value}`));
    expect(messageOf(['run', '--rate', '--json'])).toMatch(/^--rate needs a value/);
    expect(messageOf(['run', '--json', '-1'])).toMatch(/unknown option -1/);
  });

  test('short options', () => {
    expect(parse('export shop -o out.csv')).toMatchObject({ args: ['shop'], values: { output: 'out.csv' } });
  });

  test.each([
    ['rum', /unknown command 'rum'; did you mean run\?/],
    ['statsu', /did you mean status\?/],
    ['frobnicate', /unknown command 'frobnicate'$/],
    ['toString', /unknown command 'toString'/],
    ['__proto__', /unknown command '__proto__'/],
    ['constructor', /unknown command 'constructor'/],
    ['run --folow x', /unknown option --folow for 'seine run'; did you mean --follow\?/],
    ['run --zzzzzzzz x', /unknown option --zzzzzzzz for 'seine run'$/],
    ['run -x', /unknown option -x/],
    ['run x --max-pages', /--max-pages needs a value \(n\)/],
    ['run x --json=yes', /--json takes no value/],
    ['status a b', /takes one argument, got 'a b'/],
    ['jobs a', /takes no argument, got 'a'/],
    ['export -o', /--output needs a value/],
    ['run x --rate --json', /--rate/],
    ['status --retry', /unknown option --retry for 'seine status'/],
  ])('%s: one clear sentence', (line, message) => {
    const text = messageOf(line.split(' '));
    expect(text).toMatch(message);
    expect(text).not.toContain('\n');
  });
});

describe('the table of commands', () => {
  test('every example can be parsed', () => {
    for (const [name, { examples }] of Object.entries(COMMANDS)) {
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) {
        const words = example
          .replace(/^.*?seine /, '')
          .replace(/ > .*$/, '')
          .split(' ');
        expect(parseCommandLine(words).command).toBe(name);
      }
    }
  });

  const WITHOUT_FOLDER = new Set([
    'schema',
    'hostile',
    'worker',
    'drain',
    'fleet-key',
    'init',
    'shop',
    'completion',
  ]);

  test('every command has a folder and help, and every option a meaning', () => {
    for (const [name, { options, summary }] of Object.entries(COMMANDS)) {
      expect(summary).toMatch(/\.$/);
      expect(options.help).toBeDefined();
      if (!WITHOUT_FOLDER.has(name)) expect(options.dir).toBeDefined();
      for (const [option, { kind, value, doc }] of Object.entries(options)) {
        expect(option).toMatch(/^[a-z]+(-[a-z]+)*$/);
        expect(doc.length).toBeGreaterThan(5);
        expect(value === undefined).toBe(kind === 'flag');
      }
    }
  });

  test('settings that are options on the command line are known by the same name', () => {
    for (const name of ['dir', 'workers', 'contact'] as const) {
      expect(COMMANDS.run!.options[name]).toBeDefined();
      expect(SETTINGS[name]).toBeDefined();
    }
  });
});

describe('help', () => {
  test('names every command and exit code', () => {
    const text = generalHelp();
    for (const name of Object.keys(COMMANDS)) expect(text).toMatch(new RegExp(`^  ${name} `, 'm'));
    for (const { code } of Object.values(EXIT_CODES)) expect(text).toMatch(new RegExp(`^ +${code}  `, 'm'));
  });

  test('of a command names every option and example', () => {
    for (const [name, spec] of Object.entries(COMMANDS)) {
      const text = commandHelp(name, spec);
      for (const option of Object.keys(spec.options)) expect(text).toContain(`--${option}`);
      for (const example of spec.examples) expect(text).toContain(example);
    }
  });
});
