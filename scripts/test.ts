import { type SpawnOptions, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `npm test`: builds, checks types and style, runs every test, and closes with the counts. */

interface Step {
  name: string;
  command: string;
  args: string[];
  /** Where the results of its tests are. */
  report?: string;
}

/** Two coordinators and a server of their own are too much for two cores to keep time: by name only. */
const BY_NAME = ['test/e2e/fleet-postgres.test.ts'];

const folder = mkdtempSync(join(tmpdir(), 'seine-test-'));

/**
 * What fails is tried once more, and said to be: files get in each other's way now and then, and a machine that does
 * something else for a second can spoil a figure.
 */
function tests(name: string, ...args: string[]): Step {
  const report = join(folder, `${name}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  return { name, command: 'vitest', args: ['run', ...reporters, ...args], report };
}

const exclude = (paths: string[]) => paths.flatMap((path) => ['--exclude', path]);
const build: Step = { name: 'build', command: 'npm', args: ['run', '--silent', 'build'] };

/** One after the other; those in one list at the same time. */
function steps(only: string[]): Step[][] {
  if (only.length > 0) return [[build], [tests('tests', ...only)]];
  return [
    [build],
    // The first time, npm links this package and builds it once more: not while tests run what is built.
    [{ name: 'npx seine', command: 'npx', args: ['seine', '--version'] }],
    [
      { name: 'types', command: 'tsc', args: ['--noEmit'] },
      { name: 'style', command: 'biome', args: ['check', '--error-on-warnings'] },
    ],
    // A process for each file would spend half of the time on loading the same modules again.
    [tests('tests of pure code', 'test/unit', '--no-isolate', '--retry=1')],
    [
      // Most of them wait for a site's pace, a server's start or a deadline now and then: three keep two cores busy.
      tests('tests', ...['--retry=1', '--maxWorkers=3'], ...exclude(['test/unit/**', ...BY_NAME])),
    ],
  ];
}

/** What runs beside something else is shown when it is done. */
async function run({ name, command, args }: Step, isAlone: boolean): Promise<boolean> {
  const options: SpawnOptions = { stdio: isAlone ? 'inherit' : ['ignore', 'pipe', 'pipe'] };
  if (isAlone) process.stdout.write(`\n== ${name}\n`);
  const child = spawn(command, args, options);
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (bytes: Buffer) => void output.push(bytes));
  const isDone = await new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code === 0));
  });
  if (!isAlone) process.stdout.write(`\n== ${name}\n${Buffer.concat(output)}`);
  return isDone;
}

let passed = 0;
let failed = 0;
let skipped = 0;
const failedSteps: string[] = [];

/** A step that has no tests, or could not say how they went, counts as one. */
function count({ name, report }: Step, isDone: boolean): void {
  if (!isDone) failedSteps.push(name);
  if (report === undefined) {
    failed += isDone ? 0 : 1;
    return;
  }
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(
      readFileSync(report, 'utf8'),
    );
    passed += numPassedTests;
    failed += isDone ? numFailedTests : Math.max(1, numFailedTests);
    skipped += numPendingTests + numTodoTests;
  } catch {
    failed += 1;
  }
}

for (const group of steps(process.argv.slice(2)))
  await Promise.all(
    group.map(async (step) => {
      count(step, await run(step, group.length === 1));
    }),
  );
rmSync(folder, { recursive: true, force: true });
if (failedSteps.length > 0) process.stdout.write(`\nfailed: ${failedSteps.join(', ')}\n`);
process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
process.exitCode = failed > 0 ? 1 : 0;
