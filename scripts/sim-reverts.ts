import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readOptions } from './read-options.ts';
import { replaceBetween } from './replace-between.ts';

const { values } = readOptions({
  start: 'npm run sim-reverts --',
  about: `Takes fixes out of a copy of the sources, one at a time, and looks for a seed of the simulation that notices.`,
  options: {
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});

interface Revert {
  fix: string;
  /** What of it is switched off. */
  how: string;
  edits: { file: string; from: string; to: string }[];
}

const SUSPICION = 'src/core/suspicion/suspicion.ts';
const GROUPS = '[Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 16, 4, 1, 1]';

const REVERTS: readonly Revert[] = [
  {
    fix: 'sick pages hold up no others',
    how: 'a page with status 503 pauses its whole host, and is retried first',
    edits: [
      {
        file: 'src/coordinator/settle/settle-hosts.ts',
        from: "isUnavailable || !('taskId' in result)",
        to: 'true',
      },
      {
        file: 'src/coordinator/settle/settle-tasks.ts',
        from: 'const isLast = isPageTrouble',
        to: 'const isLast = false && isPageTrouble',
      },
      {
        file: 'src/worker/batch/host-queue.ts',
        from: "if (code !== 'unavailable') return false;",
        to: "if (code === 'unavailable') return true;",
      },
    ],
  },
  {
    fix: 'a ban is waited out',
    how: 'refusals never become a ban',
    edits: [
      {
        file: 'src/coordinator/settle/settle-hosts.ts',
        from: 'if (!entry) return null;',
        to: 'if (entry || !entry) return null;',
      },
    ],
  },
  {
    fix: 'an outage is waited out',
    how: 'what cannot be reached during an outage fails',
    edits: [
      {
        file: 'src/coordinator/outage/outage-watch.ts',
        from: 'if (this.#network.outage === null) return report;',
        to: 'if (this.#network) return report;',
      },
    ],
  },
  {
    fix: 'a page that kills its worker takes no other with it',
    how: 'suspects are never alone',
    edits: [{ file: SUSPICION, from: GROUPS, to: GROUPS.replace('16, 4, 1, 1', '16, 16, 16, 16') }],
  },
  {
    fix: 'one lost worker makes no suspects',
    how: 'a task that was lost once is sent alone',
    edits: [{ file: SUSPICION, from: GROUPS, to: '[Number.POSITIVE_INFINITY, 1, 1, 1, 1, 1]' }],
  },
  {
    fix: "reports of a dead coordinator's batches are taken",
    how: 'batches of a coordinator that ended go back, also those that living workers have',
    edits: [
      {
        file: 'src/coordinator/coordinator.ts',
        from: 'if (!dispatcher.adopt || !handover) return false;',
        to: 'if (dispatcher || handover) return false;',
      },
    ],
  },
];

const RUNS = 1_000;
const TASKS = 60;
const ROOT = join(import.meta.dirname, '..');

const rows = REVERTS.map((revert) => {
  const folder = mkdtempSync(join(tmpdir(), 'seine-reverted-'));
  try {
    for (const name of ['src', 'test', 'scripts', 'package.json', 'tsconfig.json'])
      cpSync(join(ROOT, name), join(folder, name), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const { file, from, to } of revert.edits) edit(join(folder, file), from, to);
    const args = ['scripts/sim.ts', '--first', '--runs', String(RUNS), '--tasks', String(TASKS)];
    const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    const found = /^seed (\d+): (.*)$/m.exec(stdout);
    const row = `| ${revert.fix} | ${revert.how} | ${found ? `${found[1]}: ${found[2]}` : 'none'} |`;
    process.stdout.write(`${row}\n`);
    return { row, isFound: found !== null };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

const table = [
  '| fix | what is switched off | seed that finds it |',
  '|---|---|---|',
  ...rows.map(({ row }) => row),
];
if (values.write) replaceBetween('docs/reliability.md', 'sim-reverts', table.join('\n'));
process.exitCode = rows.every(({ isFound }) => isFound) ? 0 : 1;

function edit(path: string, from: string, to: string): void {
  const text = readFileSync(path, 'utf8');
  if (!text.includes(from)) throw new Error(`${path} has no longer: ${from}`);
  writeFileSync(path, text.replace(from, to));
}
