import { availableParallelism } from 'node:os';

/** Every setting in one table: name, environment variable, default, meaning. docs/configuration.md shows the same. */

interface Setting<T> {
  env: string;
  /** The default, as people read it. */
  shown: string;
  secret: boolean;
  /** A secret as people may see it. */
  show?(value: T): string;
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
const yesOrNo = (text: string) => (text === 'yes' ? true : text === 'no' ? false : null);

const postgresUrl = (text: string) => (/^postgres(ql)?:\/\//i.test(text) ? text : null);

function setting<T>(entry: Omit<Setting<T>, 'secret'>): Setting<T> {
  return { ...entry, secret: false };
}

/** A URL without its password. */
function showUrl(text: string | null): string {
  if (text === null) return 'none';
  try {
    const { protocol, username, host, pathname } = new URL(text);
    return `${protocol}//${username === '' ? '' : `${username}@`}${host}${pathname}`;
  } catch {
    return '(hidden)';
  }
}

export const SETTINGS = {
  dir: setting<string>({
    env: 'SEINE_DIR',
    shown: '.seine',
    doc: 'Folder of the database, the pages and everything else.',
    default: () => '.seine',
    parse: text,
  }),
  blobs: setting<string | null>({
    env: 'SEINE_BLOBS',
    shown: 'the folder',
    doc: 'Where pages, media and the code of jobs are kept: a folder, `file:///path` or `s3://bucket/prefix`.',
    default: () => null,
    parse: text,
  }),
  store: {
    ...setting<string | null>({
      env: 'SEINE_STORE',
      shown: 'the folder',
      doc: 'Where jobs and tasks are kept instead of the folder: `postgres://user@host/database`.',
      default: () => null,
      parse: postgresUrl,
      show: showUrl,
    }),
    secret: true,
  },
  storePasswordFile: setting<string | null>({
    env: 'SEINE_STORE_PASSWORD_FILE',
    shown: 'none',
    doc: 'File with the password of the store, so that it need not be in the URL. `PGPASSWORD` works as well.',
    default: () => null,
    parse: text,
  }),
  storeConnections: setting<number>({
    env: 'SEINE_STORE_CONNECTIONS',
    shown: '8',
    doc: 'Connections to a remote store, 1 to 100; one more is kept for signs of life.',
    default: () => 8,
    parse: integer(1, 100),
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
  s3Endpoint: setting<string | null>({
    env: 'SEINE_S3_ENDPOINT',
    shown: 'AWS',
    doc: 'URL of a store that speaks S3, for `s3://` everywhere. Credentials come from where the AWS SDK finds them.',
    default: () => null,
    parse: text,
  }),
  s3Region: setting<string | null>({
    env: 'SEINE_S3_REGION',
    shown: 'AWS_REGION, or us-east-1 with an endpoint',
    doc: 'Region of the buckets.',
    default: () => null,
    parse: text,
  }),
  s3PathStyle: setting<boolean | null>({
    env: 'SEINE_S3_PATH_STYLE',
    shown: 'yes with an endpoint, else no',
    doc: '`yes` or `no`: whether the bucket stands in the path of a request instead of its host name.',
    default: () => null,
    parse: yesOrNo,
  }),
  allowPrivate: setting<'job' | 'never'>({
    env: 'SEINE_ALLOW_PRIVATE',
    shown: 'job',
    doc: 'Whether workers may dial loopback and private addresses: `job` leaves it to each job, `never` refuses whatever a job says.',
    default: () => 'job',
    parse: oneOf('job', 'never'),
  }),
  secrets: setting<string>({
    env: 'SEINE_SECRETS',
    shown: '/run/secrets',
    doc: 'Folder of mounted secrets, one a file, that jobs refer to by name.',
    default: () => '/run/secrets',
    parse: text,
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
