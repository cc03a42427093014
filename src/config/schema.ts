import { availableParallelism } from 'node:os';

/** Every setting in one table: name, environment variable, default, meaning. docs/configuration.md shows the same. */

interface Setting<T> {
  env: string;
  /** The default, as people read it. */
  shown: string;
  secret: boolean;
  doc: string;
  default(): T;
  /** Null when the text makes no sense. */
  parse(text: string): T | null;
}

const text = (text: string) => (text === '' ? null : text);
const integer = (min: number, max: number) => (text: string) => {
  const value = Number(text);
  return Number.isInteger(value) && value >= min && value <= max ? value : null;
};
const oneOf =
  <T extends string>(...values: T[]) =>
  (text: string) =>
    values.find((value) => value === text) ?? null;

function setting<T>(entry: Omit<Setting<T>, 'secret'>): Setting<T> {
  return { ...entry, secret: false };
}

export const SETTINGS = {
  dir: setting<string>({
    env: 'SEINE_DIR',
    shown: '.seine',
    doc: 'Folder of the database, the pages and everything else.',
    default: () => '.seine',
    parse: text,
  }),
  workers: setting<number>({
    env: 'SEINE_WORKERS',
    shown: 'number of cores, at most 8',
    doc: 'Worker threads, 1 to 256.',
    default: () => Math.min(8, availableParallelism()),
    parse: integer(1, 256),
  }),
  contact: setting<string | null>({
    env: 'SEINE_CONTACT',
    shown: 'none',
    doc: 'URL or mail address that is put into the default User-Agent, so that sites can reach you.',
    default: () => null,
    parse: text,
  }),
  sync: setting<'normal' | 'full'>({
    env: 'SEINE_SYNC',
    shown: 'normal',
    doc: '`normal` loses nothing when a process dies; `full` also when the power fails, at the cost of speed.',
    default: () => 'normal',
    parse: oneOf('normal', 'full'),
  }),
  log: setting<'quiet' | 'warn' | 'info'>({
    env: 'SEINE_LOG',
    shown: 'warn',
    doc: 'What is written to standard error besides progress.',
    default: () => 'warn',
    parse: oneOf('quiet', 'warn', 'info'),
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;
export type Config = { [Name in SettingName]: ReturnType<(typeof SETTINGS)[Name]['default']> };
