import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { SeineError } from '../../../core/errors.ts';
import { findChromiumPackage } from './chromium-package.ts';
import { unpackChromium } from './unpack-chromium.ts';

export interface Chromium {
  path: string;
  /** Where it was found. */
  from: 'setting' | 'playwright' | 'system' | 'bundled';
  /** What it needs in its environment. */
  environment: Record<string, string>;
}

const SYSTEM_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome-stable',
  '/usr/bin/google-chrome',
  '/usr/bin/microsoft-edge-stable',
  '/opt/google/chrome/chrome',
  '/opt/chromium/chrome',
  '/usr/local/bin/chromium',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

const SHELL_NAMES = ['chrome-headless-shell', 'headless_shell'];

/**
 * The browser of the setting; else one that Playwright has installed, one of the system, or the one that comes as an npm
 * package, in this order. The setting is a path, or one of the words `playwright`, `system` and `bundled`.
 */
export async function findChromium(setting: string | null): Promise<Chromium> {
  if (setting === 'playwright')
    return requireOne(await ofPlaywright(), 'Playwright has no Chromium installed');
  if (setting === 'system')
    return requireOne(await ofSystem(), 'no Chromium in the usual places of the system');
  if (setting === 'bundled') return unpackChromium();
  if (setting !== null) {
    const found = (await isExecutable(setting)) ? chromiumAt(setting, 'setting') : null;
    return requireOne(found, 'the Chromium of SEINE_BROWSER does not exist or is not executable');
  }
  const installed = (await ofPlaywright()) ?? (await ofSystem());
  if (installed) return installed;
  if (!findChromiumPackage())
    throw new SeineError('no Chromium found on this machine', {
      hint: 'run `seine browser install` once, or set SEINE_BROWSER to the path of one',
    });
  try {
    return await unpackChromium();
  } catch (cause) {
    throw new SeineError('no Chromium found on this machine', { hint: REMEDY, cause });
  }
}

/** A shell script on some systems, which looks at the machine first. */
const VERSION_MS = 10_000;

/** The main version of the browser that `findChromium` finds, without starting it; null where that is not known. */
export async function findChromiumMajor(setting: string | null): Promise<number | null> {
  try {
    if (setting === null) {
      const installed = (await ofPlaywright()) ?? (await ofSystem());
      return installed ? await majorOf(installed.path) : majorIn(findChromiumPackage()?.version);
    }
    // Its package has the version of what is in it.
    if (setting === 'bundled') return majorIn(findChromiumPackage()?.version);
    return await majorOf((await findChromium(setting)).path);
  } catch {
    return null;
  }
}

async function majorOf(path: string): Promise<number | null> {
  const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: VERSION_MS });
  return majorIn(stdout);
}

function majorIn(text: string | undefined): number | null {
  const [, major] = /\b(\d{2,4})\.\d/.exec(text ?? '') ?? [];
  return major === undefined ? null : Number(major);
}

const REMEDY =
  'run `seine browser install`, install one with your package manager, or set SEINE_BROWSER to its path';

function chromiumAt(path: string, from: Chromium['from']): Chromium {
  return { path, from, environment: {} };
}

function requireOne(chromium: Chromium | null, problem: string): Chromium {
  if (chromium) return chromium;
  throw new SeineError(problem, { hint: REMEDY });
}

/** The shell without a window starts three times as fast as the whole browser. */
async function ofPlaywright(): Promise<Chromium | null> {
  const { chromium } = await import('playwright-core');
  const whole = chromium.executablePath();
  if (!whole) return null;
  const folder = folderOfRevision(whole);
  if (folder) {
    const revision = basename(folder).replace('chromium-', 'chromium_headless_shell-');
    for (const path of await listShells(join(dirname(folder), revision)))
      if (await isExecutable(path)) return chromiumAt(path, 'playwright');
  }
  return (await isExecutable(whole)) ? chromiumAt(whole, 'playwright') : null;
}

/** `…/ms-playwright/chromium-1254` of `…/ms-playwright/chromium-1254/chrome-linux/chrome`. */
function folderOfRevision(path: string): string | null {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder))
    if (/^chromium-\d+$/.test(basename(folder))) return folder;
  return null;
}

async function listShells(folder: string): Promise<string[]> {
  try {
    const inner = await readdir(folder);
    return inner.flatMap((name) => SHELL_NAMES.map((shell) => join(folder, name, shell)));
  } catch {
    return [];
  }
}

async function ofSystem(): Promise<Chromium | null> {
  for (const path of SYSTEM_PATHS) if (await isExecutable(path)) return chromiumAt(path, 'system');
  return null;
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
