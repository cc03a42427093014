import { type SpawnOptions, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { useCompileCache } from '../test/support/compile-cache.ts';
import { useMemoryFolder } from '../test/support/memory-folder.ts';
import { testSeed } from '../test/support/seed.ts';

/**
 * `npm test`: builds, checks types and style, runs every test once, and closes with the counts. A test that fails is
 * not tried again, and one that is left out is a failure.
 */

interface Step {
  name: string;
  command: string;
  args: string[];
  /** Where the results of its tests are. */
  report?: string;
  /** Has what the others of its list leave of the machine, and is shown when it is done. */
  isFiller?: true;
}

const removeMemoryFolder = useMemoryFolder();
process.once('exit', () => removeMemoryFolder?.());
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const folder = mkdtempSync(join(tmpdir(), 'seine-test-'));

function tests(name: string, ...args: string[]): Step {
  const report = join(folder, `${name}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  return { name, command: 'vitest', args: ['run', ...reporters, ...args], report };
}

/** As `npm run build`, but for the types: the step of that name checks them, with those of the tests. */
const build: Step[][] = [
  [{ name: 'build', command: 'tsc', args: ['-p', 'tsconfig.build.json', '--noCheck'] }],
  [
    { name: 'packages', command: 'node', args: ['scripts/build/bundle-packages.ts'] },
    { name: 'thread', command: 'node', args: ['scripts/build/bundle-thread.ts'] },
    { name: 'command', command: 'node', args: ['scripts/build/bundle-command.ts'] },
    { name: 'schema', command: 'node', args: ['scripts/build/write-schema.ts'] },
    { name: 'dashboard', command: 'node', args: ['scripts/build/build-dashboard.ts'] },
  ],
];

/** One after the other; those in one list at the same time. */
function steps(only: string[]): Step[][] {
  if (only.length > 0) return [...build, [tests('tests', ...only)]];
  return [
    ...build,
    // The first time, npm links this package and builds it once more: not while tests run what is built.
    [{ name: 'npx seine', command: 'npx', args: ['seine', '--version'] }],
    [
      // Most of them wait for a site's pace, a server's start or a deadline now and then: six keep two cores busy, where
      // four left a sixth of their time unused.
      tests('tests', '--maxWorkers=6', '--exclude', 'test/unit/**'),
      // These wait for nothing: they have the cores when the others leave them, and at the end.
      ...[
        { name: 'types', command: 'tsc', args: ['--noEmit'] },
        { name: 'types of the dashboard', command: 'tsc', args: ['-p', 'web', '--noEmit'] },
        { name: 'style', command: 'biome', args: ['check', '--error-on-warnings'] },
        tests('tests of pure code', 'test/unit'),
      ].map((step) => ({ ...step, isFiller: true as const })),
    ],
  ];
}

/** What runs beside its like is shown when it is done. */
async function run({ name, command, args, isFiller }: Step, isAlone: boolean): Promise<boolean> {
  const options: SpawnOptions = { stdio: isAlone ? 'inherit' : ['ignore', 'pipe', 'pipe'] };
  if (isAlone) process.stdout.write(`\n== ${name}\n`);
  const child = spawn(command, args, options);
  if (isFiller && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
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
const failedFiles: string[] = [];
const skippedTests: string[] = [];

interface Report {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: {
    name: string;
    status: string;
    assertionResults: { fullName: string; status: string }[];
  }[];
}

/** A step that has no tests, or could not say how they went, counts as one. */
function count({ name, report }: Step, isDone: boolean): void {
  if (!isDone) failedSteps.push(name);
  if (report === undefined) {
    failed += isDone ? 0 : 1;
    return;
  }
  try {
    const found: Report = JSON.parse(readFileSync(report, 'utf8'));
    passed += found.numPassedTests;
    // A file that could not be loaded has no test that failed.
    const broken = found.testResults.filter(
      ({ status, assertionResults }) =>
        status === 'failed' && assertionResults.every((test) => test.status !== 'failed'),
    );
    const failedHere = found.numFailedTests + broken.length;
    failed += isDone ? failedHere : Math.max(1, failedHere);
    skipped += found.numPendingTests + found.numTodoTests;
    for (const { name, status, assertionResults } of found.testResults) {
      const path = relative(process.cwd(), name);
      if (status === 'failed') failedFiles.push(path);
      for (const test of assertionResults)
        if (test.status !== 'passed' && test.status !== 'failed')
          skippedTests.push(`${path}: ${test.fullName}`);
    }
  } catch {
    failed += 1;
  }
}

const args = process.argv.slice(2);
const seed = testSeed();
useCompileCache();
for (const group of steps(args))
  await Promise.all(
    group.map(async (step) => {
      const isAlone = !step.isFiller && group.filter(({ isFiller }) => !isFiller).length === 1;
      count(step, await run(step, isAlone));
    }),
  );
rmSync(folder, { recursive: true, force: true });
// Who asks for tests by their names leaves out the others.
const isSkippingMeant = args.some((arg) => /^(-t|--testNamePattern)(=|$)/.test(arg));
const isWrong = failed > 0 || (skipped > 0 && !isSkippingMeant);
const list = (title: string, lines: string[]) => {
  if (lines.length > 0) process.stdout.write(`\n${title}:\n${lines.map((line) => `  ${line}\n`).join('')}`);
};
list('failed', [...failedSteps, ...failedFiles]);
if (!isSkippingMeant) list('skipped, which counts as failing', skippedTests);
if (isWrong) process.stdout.write(`\nthe same again: SEINE_TEST_SEED=${seed} npm test\n`);
process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
process.exitCode = isWrong ? 1 : 0;
