import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** So that runs and workers of the tests belong together, and nothing warns that they have no key. */
export const FLEET_KEY = 'dGhlIGtleSBvZiBhIGZsZWV0IHRoYXQgdGVzdHMgdXNl';

const BIN = join(import.meta.dirname, '../../bin/seine.js');

export interface Finished {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Started {
  child: ChildProcess;
  finished: Promise<Finished>;
  /** kill -9 of the whole process group. */
  killTree(): Promise<Finished>;
}

/** The real command line in a process group of its own. */
export function startSeine(
  args: string[],
  options: { env?: Record<string, string>; input?: string; cwd?: string; user?: number; umask?: string } = {},
): Started {
  const direct = [process.execPath, BIN, ...args];
  const [program, ...rest] =
    options.umask === undefined
      ? direct
      : ['/bin/sh', '-c', `umask ${options.umask}; exec "$@"`, 'sh', ...direct];
  const child = spawn(program!, rest, {
    detached: true,
    cwd: options.cwd,
    ...(options.user === undefined ? {} : { uid: options.user, gid: options.user }),
    // One thread, unless a test asks for more: each costs a fifth of a second to start, in hundreds of processes.
    env: { ...process.env, NO_COLOR: '1', SEINE_WORKERS: '1', SEINE_FLEET_KEY: FLEET_KEY, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  child.stdin.end(options.input ?? '');
  const finished = new Promise<Finished>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr })),
  );
  return {
    child,
    finished,
    async killTree() {
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // It had ended by itself.
      }
      return finished;
    },
  };
}

export function seine(args: string[], options: Parameters<typeof startSeine>[1] = {}): Promise<Finished> {
  return startSeine(args, options).finished;
}

/** The last line of standard output as JSON. */
export function lastJson(result: Finished): Record<string, unknown> {
  const line = result.stdout.trimEnd().split('\n').at(-1) ?? '';
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(`not JSON: ${JSON.stringify(line)}; standard error: ${result.stderr}`);
  }
}

export function jsonLines<T = Record<string, unknown>>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'seine-e2e-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
