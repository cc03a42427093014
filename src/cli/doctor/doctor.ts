import { SETTINGS, type SettingName } from '../../config/schema.ts';
import { hideCredentials } from '../../core/text/redact.ts';
import { type Command, type Context, print, printJson } from '../context.ts';
import { type Check, runCheck } from './check.ts';
import { checkDispatch } from './check-dispatch.ts';
import { checkDisk, checkIdentity, checkMachine, checkNode } from './check-machine.ts';
import { checkBlobs, checkFolder, checkStore } from './check-storage.ts';

/** Says what is set, from where, and whether each part works by using it. */
export const doctorCommand: Command = async (context) => {
  const checks = await runChecks(context);
  const settings = (Object.keys(SETTINGS) as SettingName[]).map((name) => ({
    name,
    value: shownValue(name, context.loaded.config[name]),
    origin: context.loaded.origins[name],
    env: SETTINGS[name].env,
    place: context.loaded.places[name],
  }));
  const failed = checks.some((check) => !check.ok);
  if (context.json) {
    printJson(context, { ok: !failed, checks, settings });
    return failed ? 'bad-input' : 'success';
  }
  const width = Math.max(...checks.map(({ name }) => name.length));
  for (const check of checks) {
    const label = check.ok ? (check.warning === undefined ? 'ok  ' : 'warn') : 'FAIL';
    print(context.stdout, `${label} ${check.name.padEnd(width)} ${check.detail}\n`);
    for (const advice of [check.warning, check.hint])
      if (advice !== undefined) print(context.stdout, `     ${' '.repeat(width)} ${advice}\n`);
  }
  writeSettings(context, settings);
  return failed ? 'bad-input' : 'success';
};

async function runChecks(context: Context): Promise<Check[]> {
  const { settings, loaded } = context;
  const checks = [
    await runCheck('node', () => checkNode()),
    await runCheck('machine', () => checkMachine()),
    await runCheck('folder', () => checkFolder(context)),
  ];
  if (settings.store) {
    const shown = String(shownValue('store', loaded.config.store));
    checks.push(await runCheck('store', () => checkStore(context, shown)));
  }
  const { blobs } = settings;
  if (blobs) checks.push(await runCheck('blobs', () => checkBlobs(context, blobs)));
  checks.push(...(await checkDispatch(context)));
  if (context.parsed.values.browser === 'true') {
    const { checkBrowser } = await import('./check-browser.ts');
    checks.push(await runCheck('browser', (signal) => checkBrowser(settings.browser, signal)));
  }
  checks.push(await runCheck('disk', () => checkDisk(context)));
  checks.push(await runCheck('identity', () => checkIdentity(context)));
  return checks;
}

function writeSettings(context: Context, settings: { name: string; value: unknown; place: string }[]): void {
  const shown = settings.map((setting) => ({ ...setting, value: textOf(setting.value) }));
  const nameWidth = Math.max(...shown.map(({ name }) => name.length));
  const valueWidth = Math.min(40, Math.max(...shown.map(({ value }) => value.length)));
  print(context.stdout, '\nsettings\n');
  for (const { name, value, place } of shown)
    print(context.stdout, `  ${name.padEnd(nameWidth)} ${value.padEnd(valueWidth)} (${place})\n`);
}

/** Tables of numbers as they are written in the environment. */
function textOf(value: unknown): string {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return String(value ?? 'none');
  return Object.entries(value)
    .map(([name, number]) => `${name}=${number}`)
    .join(',');
}

function shownValue(name: SettingName, value: unknown): unknown {
  const setting: { secret: boolean; show?(value: never): string } = SETTINGS[name];
  if (!setting.secret && typeof value === 'string') return hideCredentials(value);
  // A number is a number in JSON, too.
  if (!setting.secret && (!setting.show || typeof value === 'number')) return value;
  return setting.show ? setting.show(value as never) : '(hidden)';
}
