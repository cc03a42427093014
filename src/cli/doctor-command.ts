import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { resolve } from 'node:path';
import { SETTINGS, type SettingName } from '../config/schema.ts';
import { messageOf } from '../core/errors.ts';
import { openFolder } from '../folder.ts';
import { isFolderLocked } from '../store/sqlite/folder-lock.ts';
import { formatBytes } from '../tui/format.ts';
import { type Command, type Context, printJson } from './context.ts';

interface Check {
  name: string;
  ok: boolean;
  detail: string;
}

/** Says what is set, from where, and whether each part works by using it. */
export const doctorCommand: Command = async (context) => {
  const checks = [
    checkNode(),
    checkMachine(),
    await checkFolder(context),
    await checkDisk(context),
    checkIdentity(context),
  ];
  const settings = (Object.keys(SETTINGS) as SettingName[]).map((name) => ({
    name,
    value: SETTINGS[name].secret ? '(hidden)' : context.loaded.config[name],
    origin: context.loaded.origins[name],
    env: SETTINGS[name].env,
  }));
  const failed = checks.some((check) => !check.ok);
  if (context.json) printJson(context, { ok: !failed, checks, settings });
  else {
    for (const { ok, name, detail } of checks)
      context.stdout.write(`${ok ? 'ok  ' : 'FAIL'} ${name.padEnd(10)} ${detail}\n`);
    context.stdout.write('\nsettings\n');
    for (const { name, value, origin, env } of settings) {
      context.stdout.write(
        `  ${name.padEnd(10)} ${String(value ?? 'none').padEnd(20)} (${origin === 'environment' ? env : origin})\n`,
      );
    }
  }
  return failed ? 'bad-input' : 'success';
};

function checkNode(): Check {
  const major = Number(process.versions.node.split('.')[0]);
  return {
    name: 'node',
    ok: major >= 24,
    detail: `${process.version}${major >= 24 ? '' : ', version 24 or newer is needed'}`,
  };
}

function checkMachine(): Check {
  return {
    name: 'machine',
    ok: true,
    detail: `${availableParallelism()} cores, ${formatBytes(totalmem())} memory`,
  };
}

async function checkFolder(context: Context): Promise<Check> {
  const dir = resolve(context.settings.dir);
  try {
    const existed = existsSync(dir);
    const folder = await openFolder(context.settings, { create: true });
    const probe = `doctor/${process.pid}`;
    await folder.blobs.put(probe, Buffer.from('seine'));
    const read = await folder.blobs.read(probe);
    await folder.blobs.delete(probe);
    await folder.close();
    const busy = isFolderLocked(dir) ? ', a coordinator is at work' : '';
    return {
      name: 'folder',
      ok: read?.toString() === 'seine',
      detail: `${dir} ${existed ? 'opens' : 'was created'}, database and files can be written${busy}`,
    };
  } catch (error) {
    return { name: 'folder', ok: false, detail: messageOf(error) };
  }
}

async function checkDisk(context: Context): Promise<Check> {
  try {
    const { bavail, bsize } = await statfs(existsSync(context.settings.dir) ? context.settings.dir : '.');
    const free = bavail * bsize;
    return { name: 'disk', ok: free > 256 * 1024 * 1024, detail: `${formatBytes(free)} free` };
  } catch (error) {
    return { name: 'disk', ok: false, detail: messageOf(error) };
  }
}

function checkIdentity(context: Context): Check {
  const { contact } = context.loaded.config;
  return {
    name: 'identity',
    ok: true,
    detail: contact
      ? `contact ${contact}`
      : `no contact set; ${SETTINGS.contact.env} tells sites how to reach you`,
  };
}
