import { availableParallelism } from 'node:os';
import { type DispatchTarget, parseDispatch } from '../core/dispatch-target.ts';
import { hostAndPort } from './host-and-port.ts';

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

function showTarget(target: DispatchTarget): string {
  const place =
    target.kind === 'bullmq'
      ? showUrl(target.url)
      : target.kind === 'lambda'
        ? `lambda://${target.name}`
        : 'threads';
  return target.weight === 1 ? place : `${place}=${target.weight}`;
}

export const SETTINGS = {
  config: setting<string | null>({
    env: 'SEINE_CONFIG',
    shown: 'seine.config.yaml or seine.config.json, if there is one',
    doc: 'File of settings, by the names of this table.',
    default: () => null,
    parse: text,
  }),
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
  dispatch: {
    ...setting<DispatchTarget[]>({
      env: 'SEINE_DISPATCH',
      shown: 'threads',
      doc: 'Where batches are worked on: `threads`, `bullmq://host:port`, `lambda://function`, or several with weights: `threads=1,lambda://function=4`.',
      default: () => [{ kind: 'threads', weight: 1 }],
      parse: parseDispatch,
      show: (targets) => targets.map(showTarget).join(','),
    }),
    secret: true,
  },
  lambdaEndpoint: setting<string | null>({
    env: 'SEINE_LAMBDA_ENDPOINT',
    shown: 'AWS',
    doc: "URL of something that speaks Lambda's API, like `seine lambda local`.",
    default: () => null,
    parse: text,
  }),
  lambdaRegion: setting<string | null>({
    env: 'SEINE_LAMBDA_REGION',
    shown: 'AWS_REGION, or us-east-1 with an endpoint',
    doc: 'Region of the function.',
    default: () => null,
    parse: text,
  }),
  lambdaConcurrency: setting<number>({
    env: 'SEINE_LAMBDA_CONCURRENCY',
    shown: '100',
    doc: 'Most invocations at once, 1 to 10,000; fewer while Lambda throttles.',
    default: () => 100,
    parse: integer(1, 10_000),
  }),
  lambdaBrowserFunction: setting<string | null>({
    env: 'SEINE_LAMBDA_BROWSER_FUNCTION',
    shown: 'the same function',
    doc: 'Function for batches that need a browser.',
    default: () => null,
    parse: text,
  }),
  browserPath: setting<string | null>({
    env: 'SEINE_BROWSER',
    shown: "Playwright's, the system's or the bundled one",
    doc: 'Path of the Chromium that shows pages; or `playwright`, `system` or `bundled`, for where to take it from.',
    default: () => null,
    parse: text,
  }),
  browserSandbox: setting<'auto' | 'on' | 'off'>({
    env: 'SEINE_BROWSER_SANDBOX',
    shown: 'auto',
    doc: "Chromium's own sandbox: `on`, `off`, or `auto`, which is on except for root.",
    default: () => 'auto',
    parse: oneOf('auto', 'on', 'off'),
  }),
  browserPages: setting<number | null>({
    env: 'SEINE_BROWSER_PAGES',
    shown: 'by free memory, at most 16',
    doc: 'Pages at once in the browser of one worker thread, 1 to 64.',
    default: () => null,
    parse: integer(1, 64),
  }),
  apiCallbackListen: setting<{ host: string; port: number } | null>({
    env: 'SEINE_API_CALLBACK_LISTEN',
    shown: 'none',
    doc: 'Where workers listen for pages that a scraping API sends by itself, like `0.0.0.0:8700`; each takes the next free port.',
    default: () => null,
    parse: hostAndPort,
    show: (value) => (value === null ? 'none' : `${value.host}:${value.port}`),
  }),
  apiCallbackUrl: setting<string | null>({
    env: 'SEINE_API_CALLBACK_URL',
    shown: 'http, with the place where they listen',
    doc: 'How the API reaches that place: a URL, in which `{port}` stands for the port.',
    default: () => null,
    parse: (text) => (URL.canParse(text.replaceAll('{port}', '1')) ? text : null),
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
    shown: '`job` for threads of a run, `never` for workers elsewhere',
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
