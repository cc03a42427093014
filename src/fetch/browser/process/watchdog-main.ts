import { spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';

/**
 * Starts a browser and stands between it and the worker: the browser ends when the worker does, however that ends, and
 * when the worker says nothing for too long, which it does as long as the browser answers it. Then what the browser has
 * put on disk is removed. Arguments: the folder, milliseconds of silence, the user that the browser runs as or nothing, the
 * command, its arguments. Each byte on
 * stdin is a heartbeat; 3 and 4 are the pipes through which the browser is told what to do.
 */

const [folder, silenceText, userText, command, ...commandArgs] = process.argv.slice(2);
if (!folder || !command) throw new Error('this file is started by the browser fetcher');
const silenceMs = Number(silenceText);
const user = userText ? { uid: Number(userText), gid: Number(userText) } : null;
/** A dying browser may still write. */
const REMOVALS_MAX = 20;
const REMOVAL_MS = 100;
const CHECK_MS = 250;

// Signals for the worker's terminal are not for this process: it goes when stdin does.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

const browser = spawn(command, commandArgs, {
  detached: true,
  stdio: ['ignore', 'ignore', 2, 3, 4],
  // Its home is below a folder that it may not list.
  ...(user ? { ...user, cwd: '/' } : {}),
});
// Else the browser would never see the worker's end of its pipes close.
closeSync(3);
closeSync(4);
browser.on('error', () => end());
browser.on('exit', () => end());
if (browser.pid !== undefined) process.stdout.write(`${browser.pid}\n`);

// Counted in checks, not by the clock: a machine that was frozen for an hour has heard nothing for no time at all.
let checks = 0;
process.stdin.on('data', () => {
  checks = 0;
});
process.stdin.on('error', () => end());
process.stdin.on('close', () => end());
setInterval(() => {
  if (++checks * CHECK_MS > silenceMs) end();
}, CHECK_MS);
process.stdout.on('error', () => end());

let isEnding = false;
function end(): void {
  if (isEnding) return;
  isEnding = true;
  remove(0);
}

function remove(tries: number): void {
  killAll();
  // Under its own name first: links that it left lead to nothing that it could not remove itself.
  if (user) spawnSync('rm', ['-rf', `${folder}/home`], { ...user, stdio: 'ignore', cwd: '/' });
  try {
    // A root with few rights may not look into it, but remove what is empty.
    if (user && existsSync(`${folder}/home`)) rmdirSync(`${folder}/home`);
    rmSync(folder!, { recursive: true, force: true });
  } catch {
    if (tries < REMOVALS_MAX) {
      setTimeout(() => remove(tries + 1), REMOVAL_MS);
      return;
    }
  }
  // Once more: what was started in the meantime.
  killAll();
  process.exit(0);
}

/** The group, and helpers that have left it but name the folder. */
function killAll(): void {
  if (browser.pid !== undefined) kill(-browser.pid);
  for (const pid of listProcesses()) {
    if (pid !== process.pid && pid !== process.ppid && namesFolder(pid)) kill(pid);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has gone already.
  }
}

/** Where there is no /proc, the group must do. */
function listProcesses(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function namesFolder(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder!);
  } catch {
    return false;
  }
}
