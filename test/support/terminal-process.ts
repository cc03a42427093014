import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'vitest';

const BIN = join(import.meta.dirname, '../../bin/seine.js');
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

interface AtTerminal {
  /** Waits until what is on the screen matches. */
  until(pattern: RegExp): Promise<void>;
  press(keys: string): void;
  finished: Promise<{ code: number | null; output: string }>;
  kill(): void;
}

/** The command line at a terminal, which `script` of util-linux makes. */
export function startAtTerminal(args: string[]): AtTerminal {
  const command = [process.execPath, BIN, ...args].map(quoted).join(' ');
  const child = spawn('script', ['--quiet', '--return', '--command', `exec ${command}`, '/dev/null'], {
    env: { ...process.env, SEINE_WORKERS: '1', TERM: 'xterm', CI: '', COLUMNS: '100' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const finished = new Promise<{ code: number | null; output: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, output })),
  );
  return {
    until: (pattern) => expect.poll(() => output, { timeout: 120_000 }).toMatch(pattern),
    press: (keys) => void child.stdin.write(keys),
    finished,
    kill: () => void child.kill('SIGKILL'),
  };
}
