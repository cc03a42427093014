import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `npm test`: builds, checks types and style, runs every test, and closes with the counts. */

function step(name: string, command: string, args: string[]): boolean {
  process.stdout.write(`\n== ${name}\n`);
  return spawnSync(command, args, { stdio: 'inherit' }).status === 0;
}

const only = process.argv.slice(2);
const failedSteps: string[] = [];
const check = (name: string, command: string, args: string[]) => {
  if (!step(name, command, args)) failedSteps.push(name);
};

check('build', 'npm', ['run', '--silent', 'build']);
if (only.length === 0) {
  // The first time, npm links this package and builds it once more: not while tests run what is built.
  check('npx seine', 'npx', ['seine', '--version']);
  check('types', 'tsc', ['--noEmit']);
  check('style', 'biome', ['check', '--error-on-warnings']);
}
/**
 * These measure time or kill at random moments: they get the machine for themselves, one file at a time. A machine
 * that does something else for a second can spoil a figure, so a failed one is measured once more.
 */
const ALONE = [
  'adaptive',
  'complete',
  'crash',
  'hostile',
  'hostile-neighbours',
  'polite',
  'proxies-speed',
].map((name) => `test/e2e/${name}.test.ts`);
/** Two coordinators and a server of their own are too much for two cores to keep time: by name only. */
const BY_NAME = ['test/e2e/fleet-postgres.test.ts'];
const RUNS =
  only.length > 0
    ? [{ name: 'tests', args: only }]
    : [
        {
          name: 'tests of pure code',
          // A process for each file would spend half of the time on loading the same modules again.
          args: ['test/unit', '--no-isolate', '--retry=1'],
        },
        {
          name: 'tests',
          // Two files at a time get in each other's way now and then: what fails is tried once more, and said to be.
          args: [
            '--retry=1',
            ...['test/unit/**', ...ALONE, ...BY_NAME].flatMap((path) => ['--exclude', path]),
          ],
        },
        {
          name: 'tests that need the machine for themselves',
          args: [...ALONE.filter((path) => existsSync(path)), '--no-file-parallelism', '--retry=1'],
        },
      ];

const folder = mkdtempSync(join(tmpdir(), 'seine-test-'));
let passed = 0;
let failed = failedSteps.length;
let skipped = 0;
for (const [index, { name, args }] of RUNS.entries()) {
  const results = join(folder, `results-${index}.json`);
  check(name, 'vitest', [
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${results}`,
    ...args,
  ]);
  try {
    const report = JSON.parse(readFileSync(results, 'utf8'));
    passed += report.numPassedTests;
    failed += report.numFailedTests + (report.numFailedTests === 0 && !report.success ? 1 : 0);
    skipped += report.numPendingTests + report.numTodoTests;
  } catch {
    failed += 1;
  }
}
rmSync(folder, { recursive: true, force: true });
if (failedSteps.length > 0) process.stdout.write(`\nfailed: ${failedSteps.join(', ')}\n`);
process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
process.exitCode = failed > 0 || failedSteps.length > 0 ? 1 : 0;
