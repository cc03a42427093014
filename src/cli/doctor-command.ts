import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { resolve } from 'node:path';
import { SETTINGS, type SettingName } from '../config/schema.ts';
import { messageOf } from '../core/errors.ts';
import { hideCredentials } from '../core/redact.ts';
import { openFolder } from '../folder.ts';
import { openBlobs } from '../open-blobs.ts';
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
    ...(context.settings.store ? [await checkStore(context)] : []),
    await checkFolder(context),
    await checkDisk(context),
    checkIdentity(context),
  ];
  const settings = (Object.keys(SETTINGS) as SettingName[]).map((name) => ({
    name,
    value: shownValue(name, context.loaded.config[name]),
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

function shownValue(name: SettingName, value: unknown): unknown {
  const setting: { secret: boolean; show?(value: never): string } = SETTINGS[name];
  if (!setting.secret) return typeof value === 'string' ? hideCredentials(value) : value;
  return setting.show ? setting.show(value as never) : '(hidden)';
}

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

/** Writes down that somebody is at work on no job, and takes it back. */
async function checkStore(context: Context): Promise<Check> {
  const name = 'store';
  try {
    const folder = await openFolder(context.settings, { create: true });
    try {
      const [newest] = await folder.store.jobs.list(1);
      await folder.store.jobs.join(0);
      await folder.store.jobs.leave(0);
      const jobs = newest ? `the newest job is ${newest.name}-${newest.run}` : 'no jobs yet';
      const place = shownValue('store', context.loaded.config.store);
      return { name, ok: true, detail: `${place} can be read and written, ${jobs}` };
    } finally {
      await folder.close();
    }
  } catch (error) {
    return { name, ok: false, detail: messageOf(error) };
  }
}

async function checkFolder(context: Context): Promise<Check> {
  const dir = resolve(context.settings.dir);
  try {
    const existed = existsSync(dir);
    const { settings } = context;
    const opened = settings.store
      ? await openBlobs(settings.blobs ?? dir, settings.s3 ? { s3: settings.s3 } : {})
      : await openFolder(settings, { create: true });
    const blobs = 'blobs' in opened ? opened.blobs : opened;
    const probe = `doctor/${process.pid}`;
    await blobs.put(probe, Buffer.from('seine'));
    const read = await blobs.read(probe);
    await blobs.delete(probe);
    await opened.close();
    const busy = isFolderLocked(dir) ? ', a coordinator is at work' : '';
    return {
      name: 'folder',
      ok: read?.toString() === 'seine',
      detail: `${dir} ${existed ? 'opens' : 'was created'}, ${settings.store ? '' : 'database and '}files can be written${busy}`,
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
