import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { folderOf, ordinaryUser } from '../../support/ordinary-user.ts';
import { seine } from '../../support/seine-in-process.ts';
import {
  type Finished,
  lastJson,
  seine as seineProcess,
  startSeine,
  temporaryFolder,
} from '../../support/seine-process.ts';
import { type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';

const folder = temporaryFolder();
const at = (...parts: string[]) => join(folder.path, ...parts);
let site: LinkedSite;

beforeAll(async () => {
  site = await startLinkedSite({ pages: 500 });
});

afterAll(async () => {
  await site.close();
  folder.remove();
});

/** One sentence, perhaps a hint below it, no stack trace. */
function expectSentence({ code, stderr, stdout }: Finished, exitCode: number, sentence: RegExp): void {
  expect(stderr).toMatch(sentence);
  expect(stderr).not.toMatch(/\n\s+at /);
  expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2);
  expect(stdout).toBe('');
  expect(code).toBe(exitCode);
}

test('what a file is made of does not control the terminal', async () => {
  writeFileSync(at('hostile.csv'), 'a\u001b]0;title\u0007b\u001b[2J\u009b1mc,n\nhttp://x.example/,1\n');
  const finished = await seine(['run', 'hostile.csv', '--dir', at('hostile')], { cwd: folder.path });
  expect(finished.code).toBe(2);
  expect(finished.stderr).toMatch(/^seine: no column 'url'.* among: a/);
  expect(finished.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
});

test.each(['--metrics', '--ui'])(
  'a run whose %s cannot listen ends with one sentence, and can be resumed',
  async (option) => {
    const { port } = new URL(site.url);
    const dir = at(`taken${option}`);
    const args = ['run', site.url, '--allow-private', '--max-pages', '3', '--dir', dir];
    // A process of its own: a run that went on would break it.
    const { code, stderr } = await seineProcess([...args, `${option}=127.0.0.1:${port}`, '--json']);
    expect(stderr).toBe(
      `seine: cannot listen on 127.0.0.1:${port}: another program listens there\n  choose another address with ${option}; port 0 takes a free one\n`,
    );
    expect(code).toBe(2);
    expect((await seine([...args, '--json'])).code).toBe(0);
  },
);

test('a log file that cannot be written is a bad setting', async () => {
  const finished = await seine(['jobs', '--dir', at('none')], {
    env: { SEINE_LOG_FILE: at('nowhere', 'seine.log') },
  });
  expectSentence(
    finished,
    2,
    /^seine: cannot write the log file .*seine\.log \(ENOENT\)\n {2}correct SEINE_LOG_FILE\n$/,
  );
});

describe('bad input gets one clear sentence and exit code 2', () => {
  const cases: [name: string, args: string[], sentence: RegExp][] = [
    ['a missing file', ['run', 'no-such-file.txt'], /^seine: no such file: .*no-such-file\.txt\n/],
    ['a missing job file', ['run', 'no-such-job.ts'], /^seine: no such file: no-such-job\.ts\n/],
    [
      'an unknown option',
      ['run', 'http://127.0.0.1/', '--folow'],
      /unknown option --folow for 'seine run'; did you mean --follow\?/,
    ],
    ['an unknown command', ['rnu'], /unknown command 'rnu'; did you mean run\?/],
    ['an option without its value', ['run', 'http://127.0.0.1/', '--rate'], /--rate needs a value/],
    [
      'a number that is none',
      ['run', 'http://127.0.0.1/', '--rate', 'fast'],
      /--rate needs a number, got 'fast'/,
    ],
    [
      'a bad selector',
      ['run', 'http://127.0.0.1/', '--select', 'a=p['],
      /selector of field 'a' of route 'page' is not valid CSS/,
    ],
    ['nothing to run', ['run'], /nothing to run/],
    ['another scheme', ['run', 'ftp://127.0.0.1/'], /not an http\(s\) URL: ftp:/],
    ['a scope that does not exist', ['run', 'http://127.0.0.1/', '--follow=planet'], /follow/],
    ['a folder without jobs', ['status'], /no Seine folder at/],
  ];
  test.each(cases)('%s', async (_, args, sentence) => {
    expectSentence(await seine([...args, '--dir', at('none')]), 2, sentence);
  });

  test('a job file with a type error', async () => {
    writeFileSync(
      at('typo.ts'),
      "export default { sources: ['http://127.0.0.1/'], limits: { pages: 'many' } };\n",
    );
    expectSentence(
      await seine(['run', at('typo.ts'), '--dir', at('none')]),
      2,
      /typo\.ts: limits\.pages: expected a whole number or null, got "many"/,
    );
  });

  test('a job file with a syntax error', async () => {
    writeFileSync(at('broken.ts'), 'export default {\n  sources: [,\n');
    expectSentence(await seine(['run', at('broken.ts'), '--dir', at('none')]), 2, /broken\.ts:\d+:\d+: /);
  });

  test('a job file that throws', async () => {
    writeFileSync(at('throws.ts'), "throw new Error('not today');\n");
    expectSentence(
      await seine(['run', at('throws.ts'), '--dir', at('none')]),
      2,
      /cannot load .*throws\.ts: not today/,
    );
  });

  test('a folder that cannot be written', async () => {
    writeFileSync(at('file'), '');
    expectSentence(
      await seine(['run', site.url, '--dir', at('file', 'below')]),
      2,
      /cannot write to|cannot open/,
    );
    const user = ordinaryUser();
    const closed = folderOf(user);
    chmodSync(closed.path, 0o500);
    const run = await seine(['run', site.url, '--dir', closed.path], { user, cwd: '/' });
    closed.remove();
    expectSentence(run, 2, /cannot write to/);
  });
});

test('bad URLs in a list are counted and reported, the rest runs', async () => {
  writeFileSync(
    at('urls.txt'),
    `${site.url}\nnot a url\nftp://127.0.0.1/x\n\n# a comment\n${site.url}page/1.html\nhttp://\n`,
  );
  const run = await seine(['run', at('urls.txt'), '--allow-private', '--dir', at('list'), '--json']);
  expect(run.code).toBe(0);
  expect(lastJson(run)).toMatchObject({ accepted: 2, done: 2, rejected: 3 });
  expect(run.stderr).toMatch(/urls\.txt, line 2: not an http\(s\) URL: "not a url"/);
  expect(run.stderr).toMatch(/line 3/);
  expect(run.stderr).toMatch(/line 7/);
});

test('a second coordinator on the folder exits at once and harms nothing', async () => {
  const dir = at('shared');
  const args = [
    'run',
    site.url,
    '--follow',
    '--rate',
    '50',
    '--allow-private',
    '--dir',
    dir,
    '--name',
    'first',
    '--json',
  ];
  const first = startSeine(args);
  await site.requests(site.log.length + 20);
  // It cannot end by itself, however long the others take to start.
  site.hold();
  const second = await seine(['run', site.url, '--allow-private', '--dir', dir, '--name', 'second']);
  expectSentence(second, 5, /another coordinator is running in .*shared \(process \d+, since /);
  expect((await seine(['status', 'first', '--dir', dir, '--json'])).stdout).toMatch(/"state":"running"/);
  expect((await seine(['stop', 'first', '--dir', dir])).code).toBe(0);
  const stopped = await first.finished;
  site.release();
  expect(stopped.code).toBe(130);
  expect(lastJson(stopped)).toMatchObject({ state: 'stopped', leased: 0 });
});

test('a private address is refused unless allowed', async () => {
  const run = await seine(['run', site.url, '--no-robots', '--dir', at('private'), '--json']);
  expect(run.code).toBe(3);
  expect(lastJson(run)).toMatchObject({ accepted: 1, dead: 1, requests: 0 });
  const dead = await seine(['dead', '--dir', at('private')]);
  expect(dead.stdout).toMatch(/private-address/);
});

describe('folders below /proc, where nothing can be made', () => {
  // Within a process of its own: what never ends can be ended.
  const tried = async (args: string[], env: Record<string, string> = {}, input?: string) => {
    const started = startSeine(args, { env, cwd: folder.path, ...(input === undefined ? {} : { input }) });
    const tooLong = setTimeout(() => void started.killTree(), 60_000);
    try {
      return await started.finished;
    } finally {
      clearTimeout(tooLong);
    }
  };
  const page = 'http://127.0.0.1:1/';

  test.each(['/proc/seine', '/proc/seine/below', '/proc'])('blobs in %s', async (place) => {
    const finished = await tried(['run', page, '--dir', at('blobs')], { SEINE_BLOBS: place });
    expectSentence(finished, 2, /cannot write to the folder \/proc\S*: .+\n {2}choose .* --blobs/);
  });

  test('the folder of a job, also when its list is read from standard input', async () => {
    for (const input of [undefined, `${page}\n`]) {
      const finished = await tried(['run', input ? '-' : page, '--dir', '/proc/seine'], {}, input);
      expectSentence(finished, 2, /cannot write to the folder \/proc\/seine: /);
    }
  });

  test('a new job file', async () => {
    const finished = await tried(['init', '--into', '/proc/seine']);
    expectSentence(finished, 2, /cannot write to \/proc\/seine: /);
  });
});
