import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, SeineError } from '../core/errors.ts';
import { suggestion } from '../core/text/nearest-name.ts';
import { SETTINGS, type SettingName } from './schema.ts';

/** Settings by the names of the table, as texts; those of secrets also as the path of a file that holds them. */
export interface SettingsFile {
  path: string;
  texts: Partial<Record<SettingName, string>>;
  secretFiles: Partial<Record<SettingName, string>>;
}

/** Looked for in the working directory. */
const NAMES = ['seine.config.yaml', 'seine.config.yml', 'seine.config.json'];
/** Settings are a page of text; this is something else. */
const BYTES_MAX = 1024 * 1024;

/** The file that is named, else the one in the working directory; null when there is none. */
export async function readSettingsFile(named: string | null, cwd: string): Promise<SettingsFile | null> {
  const path = named ?? findSettingsFile(cwd);
  return path === null ? null : checkSettings(path, await parseFile(path));
}

function findSettingsFile(cwd: string): string | null {
  const found = NAMES.filter((name) => existsSync(join(cwd, name)));
  if (found.length > 1)
    throw new SeineError(`there are two settings files, ${found.join(' and ')}`, {
      hint: 'keep one of them',
    });
  return found.length === 1 ? join(cwd, found[0]!) : null;
}

async function parseFile(path: string): Promise<unknown> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? messageOf(error);
    throw new SeineError(`cannot read the settings file ${path} (${code})`, {
      hint: 'correct --config or SEINE_CONFIG',
    });
  }
  if (text.length > BYTES_MAX) throw new SeineError(`the settings file ${path} is too large`);
  try {
    if (path.endsWith('.json')) return JSON.parse(text);
    const { parseDocument } = await import('yaml');
    const document = parseDocument(text, { logLevel: 'silent' });
    // The parser would print what it only warns of, with the line.
    const [problem] = [...document.errors, ...document.warnings];
    if (problem) throw problem;
    return document.toJS();
  } catch (error) {
    // A parser quotes the line that it does not understand, and that may be one with a password.
    const place = (error as { linePos?: { line: number }[] }).linePos?.[0]?.line;
    throw new SeineError(`cannot parse the settings file ${path}${place ? `, line ${place}` : ''}`, {
      hint: `write ${path.endsWith('.json') ? '{ "name": "value" }' : 'name: value, one per line'}`,
    });
  }
}

function checkSettings(path: string, value: unknown): SettingsFile {
  const file: SettingsFile = { path, texts: {}, secretFiles: {} };
  // A file of comments only.
  if (value === null) return file;
  if (typeof value !== 'object' || Array.isArray(value))
    throw new SeineError(`the settings file ${path} must contain names and values`, {
      hint: 'write name: value, one per line',
    });
  for (const [name, given] of Object.entries(value)) {
    const text = textOf(given, name);
    if (text === null)
      throw new SeineError(`${name} in ${path} must be a string, a number, true or false`, {
        hint: 'see docs/configuration.md',
      });
    const secret = SECRETS.find((setting) => name === `${setting}File`);
    if (secret) file.secretFiles[secret] = text;
    else if (isAllowed(name)) {
      checkPlace(name, path);
      file.texts[name] = text;
    } else
      throw new SeineError(`unknown setting ${name} in ${path}${suggestion(name, KNOWN)}`, {
        hint: 'see docs/configuration.md, or run `seine doctor` to list all settings',
      });
  }
  return file;
}

const SECRETS = (Object.keys(SETTINGS) as SettingName[]).filter((name) => SETTINGS[name].secret);
const KNOWN = [
  ...Object.keys(SETTINGS).filter((name) => name !== 'config'),
  ...SECRETS.map((name) => `${name}File`),
];

function isAllowed(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name) && name !== 'config';
}

function checkPlace(name: SettingName, path: string): void {
  const setting: { env: string; environmentOnly?: boolean } = SETTINGS[name];
  if (setting.environmentOnly)
    throw new SeineError(`${name} cannot be set in a settings file, as in ${path}`, {
      hint: `set the environment variable ${setting.env}`,
    });
}

/** As it would be written on a command line. */
function textOf(value: unknown, name: string): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (name === 'prices' && typeof value === 'object' && value !== null && !Array.isArray(value))
    return Object.entries(value)
      .map(([item, price]) => `${item}=${price}`)
      .join(',');
  // Several places are easier to read as a list.
  const isList = name === 'dispatch' && Array.isArray(value) && value.length > 0;
  return isList && value.every((entry) => typeof entry === 'string') ? value.join(',') : null;
}
