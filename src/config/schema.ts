import {
  parseThresholds,
  THRESHOLDS_DEFAULT,
  type Thresholds,
  thresholdsText,
} from '../core/alerts/alerts.ts';
import { type MailTarget, mailTargetText, parseMailTarget } from '../core/alerts/mail-target.ts';
import { PRICES_DEFAULT, type Prices, parsePrices, pricesText } from '../core/cost/cost.ts';
import { parseFleetKeys } from '../core/fleet-key/fleet-key.ts';
import { type DispatchTarget, parseDispatch } from '../core/job-schema/dispatch-target.ts';
import { isApiKey } from '../core/keys/api-key.ts';
import { threadsFor } from '../core/machine/machine-shares.ts';
import { parseSharedPools, type SharedPool, sharedPoolsText } from '../core/proxies/shared-pools.ts';
import { KEEP_MS, type ThreadCounts } from '../core/scaling/threads.ts';
import { machine } from '../machine/machine.ts';

/** `127.0.0.1:8700` or `[::1]:8700`; null when it is neither. */
function hostAndPort(text: string): { host: string; port: number } | null {
  const [, host, port] = /^(\[[^\]]+\]|[^:]+):(\d{1,5})$/.exec(text) ?? [];
  return host === undefined || Number(port) > 65_535
    ? null
    : { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

/** Every setting in one table: name, environment variable, default, meaning. docs/configuration.md shows the same. */

interface Setting<T> {
  env: string;
  /** The default, as people read it. */
  shown: string;
  secret: boolean;
  /** A program that is run, or more power for jobs: it cannot be set in a file, which may come in one folder with a job. */
  environmentOnly?: boolean;
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

/** Begins with all: nothing is slower than with a fixed number. */
export function threadsByDefault(): ThreadCounts {
  const max = threadsFor(machine());
  return { min: 1, max, first: max };
}

/** `4`, or `1..8`: that begins with the least. */
function threadRange(text: string): number | ThreadCounts | null {
  const [min = null, max = null, ...more] = text.split('..').map(integer(1, 256));
  if (!text.includes('..')) return min;
  return min === null || max === null || max < min || more.length > 0 ? null : { min, max, first: min };
}

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
    doc: 'Settings file. It uses the setting names of this table.',
    default: () => null,
    parse: text,
  }),
  dir: setting<string>({
    env: 'SEINE_DIR',
    shown: '.seine',
    doc: 'Folder for the database, pages and all other files.',
    default: () => '.seine',
    parse: text,
  }),
  blobs: setting<string | null>({
    env: 'SEINE_BLOBS',
    shown: 'the folder',
    doc: 'Where to store pages, media and job code: a folder, `file:///path` or `s3://bucket/prefix`.',
    default: () => null,
    parse: text,
  }),
  store: {
    ...setting<string | null>({
      env: 'SEINE_STORE',
      shown: 'the folder',
      doc: 'Database for jobs and tasks, instead of the folder: `postgres://user@host/database`.',
      default: () => null,
      parse: postgresUrl,
      show: showUrl,
    }),
    secret: true,
  },
  storePasswordFile: setting<string | null>({
    env: 'SEINE_STORE_PASSWORD_FILE',
    shown: 'none',
    doc: 'File with the database password, to keep it out of the URL. `PGPASSWORD` works too.',
    default: () => null,
    parse: text,
  }),
  storeConnections: setting<number | null>({
    env: 'SEINE_STORE_CONNECTIONS',
    shown: '4',
    doc: 'Connections to PostgreSQL for work, 1 to 100. Up to four more are used for reads and heartbeats.',
    default: () => null,
    parse: integer(1, 100),
  }),
  workers: setting<number | ThreadCounts | null>({
    env: 'SEINE_WORKERS',
    shown:
      'number of cores, at most 8 and one for each 128 MB of memory; in runs and servers fewer while fewer are enough',
    doc: 'Worker threads, 1 to 256; or a range such as `1..8`, which starts with the lower number and follows the work.',
    default: () => null,
    parse: threadRange,
    show: (workers) => {
      if (typeof workers === 'number') return String(workers);
      const { min, max } = workers ?? threadsByDefault();
      return `${min}..${max}`;
    },
  }),
  workersKeepSeconds: setting<number>({
    env: 'SEINE_WORKERS_KEEP_SECONDS',
    shown: '300',
    doc: 'Seconds for which fewer worker threads must be enough before some end, 1 to 86,400. Only if `workers` is not one number.',
    default: () => KEEP_MS / 1_000,
    parse: integer(1, 86_400),
  }),
  dispatch: {
    ...setting<DispatchTarget[]>({
      env: 'SEINE_DISPATCH',
      shown: 'threads',
      doc: 'Where batches run: `threads`, `bullmq://host:port`, `lambda://function`, or several with weights: `threads=1,lambda://function=4`.',
      default: () => [{ kind: 'threads', weight: 1 }],
      parse: parseDispatch,
      show: (targets) => targets.map(showTarget).join(','),
    }),
    secret: true,
  },
  fleetKey: {
    ...setting<string[] | null>({
      env: 'SEINE_FLEET_KEY',
      shown: 'none',
      doc: 'Key that signs and encrypts batches and reports, as `seine fleet-key create` makes it. Required for a Redis on another machine. To replace a key, give two, separated by a comma: the first signs, both are accepted.',
      default: () => null,
      parse: parseFleetKeys,
      show: (keys) => (keys === null ? 'none' : keys.length === 1 ? '1 key' : `${keys.length} keys`),
    }),
    secret: true,
  },
  lambdaEndpoint: setting<string | null>({
    env: 'SEINE_LAMBDA_ENDPOINT',
    shown: 'AWS',
    doc: 'URL of a server with the Lambda API, such as `seine lambda local`.',
    default: () => null,
    parse: text,
  }),
  lambdaCredentials: setting<string | null>({
    env: 'SEINE_LAMBDA_CREDENTIALS',
    shown: "the AWS SDK's",
    doc: 'File with the access key for that server. `seine lambda local` makes one at each start.',
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
    doc: 'Maximum concurrent invocations, 1 to 10,000. Seine uses fewer while Lambda throttles.',
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
  browserPath: {
    ...setting<string | null>({
      env: 'SEINE_BROWSER',
      shown: "Playwright's, the system's or the bundled one",
      doc: 'Chromium to use: a path, or `playwright`, `system` or `bundled`.',
      default: () => null,
      parse: text,
    }),
    environmentOnly: true,
  },
  browserSandbox: setting<'auto' | 'try' | 'on' | 'off'>({
    env: 'SEINE_BROWSER_SANDBOX',
    shown: 'auto',
    doc: "Chromium's sandbox: `on`, `off`, `auto`, which turns it off only for root, or `try`, which also turns it off if there are no user namespaces.",
    default: () => 'auto',
    parse: oneOf('auto', 'try', 'on', 'off'),
  }),
  browserPages: setting<number | null>({
    env: 'SEINE_BROWSER_PAGES',
    shown: 'depends on free memory, at most 16',
    doc: 'Concurrent pages in the browser of one worker thread, 1 to 64.',
    default: () => null,
    parse: integer(1, 64),
  }),
  apiCallbackListen: setting<{ host: string; port: number } | null>({
    env: 'SEINE_API_CALLBACK_LISTEN',
    shown: 'none',
    doc: 'Address where workers receive callbacks of a scraping API, such as `0.0.0.0:8700`. Each worker takes the next free port.',
    default: () => null,
    parse: hostAndPort,
    show: (value) => (value === null ? 'none' : `${value.host}:${value.port}`),
  }),
  apiCallbackUrl: setting<string | null>({
    env: 'SEINE_API_CALLBACK_URL',
    shown: 'http:// and the address of apiCallbackListen',
    doc: 'URL at which the API reaches that address; `{port}` is replaced with the port.',
    default: () => null,
    parse: (text) => (URL.canParse(text.replaceAll('{port}', '1')) ? text : null),
  }),
  contact: setting<string | null>({
    env: 'SEINE_CONTACT',
    shown: 'none',
    doc: 'URL or email address to include in the default User-Agent, so that site owners can reach you.',
    default: () => null,
    parse: text,
  }),
  sync: setting<'normal' | 'full'>({
    env: 'SEINE_SYNC',
    shown: 'normal',
    doc: '`normal` loses nothing if a process dies. `full` also loses nothing on power failure, but is slower.',
    default: () => 'normal',
    parse: oneOf('normal', 'full'),
  }),
  s3Endpoint: setting<string | null>({
    env: 'SEINE_S3_ENDPOINT',
    shown: 'AWS',
    doc: 'URL of an S3-compatible service, used for every `s3://`. Credentials come from the usual AWS SDK sources.',
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
    shown: 'yes with an endpoint, otherwise no',
    doc: '`yes` or `no`: put the bucket name in the path of requests instead of the host name.',
    default: () => null,
    parse: yesOrNo,
  }),
  allowPrivate: setting<'job' | 'never'>({
    env: 'SEINE_ALLOW_PRIVATE',
    shown: '`job` for the threads of a run, `never` for other workers',
    doc: 'Whether Seine may connect to private addresses, including loopback: `job` lets each job decide, `never` refuses them for pages, proxies, scraping APIs, source files, WebSockets and `notify`.',
    default: () => 'job',
    parse: oneOf('job', 'never'),
  }),
  adminKey: {
    ...setting<string | null>({
      env: 'SEINE_ADMIN_KEY',
      shown: 'none',
      doc: 'API key with admin scope that `seine serve` has from the start: one of `seine keys create`, or 32 or more random characters. Best as a file: `SEINE_ADMIN_KEY_FILE`.',
      default: () => null,
      parse: (text) => (isApiKey(text) ? text : null),
      show: (key) => (key === null ? 'none' : '1 key'),
    }),
    secret: true,
    environmentOnly: true,
  },
  webhooksAllowPrivate: {
    ...setting<boolean>({
      env: 'SEINE_WEBHOOKS_ALLOW_PRIVATE',
      shown: 'false',
      doc: '`true` or `false`: whether webhooks may be sent to private addresses and to this machine. Link-local addresses are never called.',
      default: () => false,
      parse: (text) => (text === 'true' ? true : text === 'false' ? false : null),
    }),
    environmentOnly: true,
  },
  alerts: setting<Thresholds>({
    env: 'SEINE_ALERTS',
    shown: thresholdsText(THRESHOLDS_DEFAULT),
    doc: 'Thresholds of the alerts of `seine serve`, see docs/monitoring.md; others keep their defaults: `success=0.9,diskGb=10`.',
    default: () => THRESHOLDS_DEFAULT,
    parse: parseThresholds,
    show: thresholdsText,
  }),
  alertSlackUrl: {
    ...setting<string | null>({
      env: 'SEINE_ALERT_SLACK_URL',
      shown: 'none',
      doc: 'Where `seine serve` posts alerts as `{"text": …}`: an incoming webhook of Slack, Mattermost or the like.',
      default: () => null,
      parse: (text) => (/^https?:\/\/./.test(text) ? text : null),
      show: (url) => (url === null ? 'none' : '(hidden)'),
    }),
    secret: true,
  },
  alertMail: {
    ...setting<MailTarget | null>({
      env: 'SEINE_ALERT_MAIL',
      shown: 'none',
      doc: 'Mail server and recipients of alerts: `smtps://user:password@smtp.example?to=ops@example.com`, or `smtp://` with STARTTLS. See docs/monitoring.md. Best as a file: `SEINE_ALERT_MAIL_FILE`.',
      default: () => null,
      parse: parseMailTarget,
      show: (target) => (target === null ? 'none' : mailTargetText(target)),
    }),
    secret: true,
  },
  alertCommand: {
    ...setting<string[] | null>({
      env: 'SEINE_ALERT_COMMAND',
      shown: 'none',
      doc: 'Program that `seine serve` runs for each alert, with its arguments, separated by spaces. It gets the alert as JSON on standard input.',
      default: () => null,
      parse: (text) => (text.trim() === '' ? null : text.trim().split(/\s+/)),
      show: (command) => command?.join(' ') ?? 'none',
    }),
    environmentOnly: true,
  },
  modelUrl: {
    ...setting<string | null>({
      env: 'SEINE_MODEL_URL',
      shown: 'none',
      doc: 'Language model for `seine learn --model`: the address of an API like OpenAI’s, with its version: `https://api.example/v1`. It may be in your own network unless `SEINE_ALLOW_PRIVATE` is `never`, but never at a link-local address.',
      default: () => null,
      parse: (text) => (/^https?:\/\/./.test(text) && URL.canParse(text) ? text : null),
      show: showUrl,
    }),
    environmentOnly: true,
  },
  modelName: {
    ...setting<string | null>({
      env: 'SEINE_MODEL_NAME',
      shown: 'none',
      doc: 'Name of that model in the API.',
      default: () => null,
      parse: text,
    }),
    environmentOnly: true,
  },
  modelKey: {
    ...setting<string | null>({
      env: 'SEINE_MODEL_KEY',
      shown: 'none',
      doc: 'Key for that API. Best as a file: `SEINE_MODEL_KEY_FILE`.',
      default: () => null,
      parse: text,
      show: (key) => (key === null ? 'none' : '1 key'),
    }),
    secret: true,
    environmentOnly: true,
  },
  prices: setting<Prices>({
    env: 'SEINE_PRICES',
    shown: pricesText(PRICES_DEFAULT),
    doc: 'Prices in US dollars, see docs/cost.md; others keep their defaults: `proxyGb=8,machineHour=0.1`. In a settings file also as a table of names and numbers.',
    default: () => PRICES_DEFAULT,
    parse: parsePrices,
    show: pricesText,
  }),
  proxyPools: setting<ReadonlyMap<string, SharedPool>>({
    env: 'SEINE_PROXY_POOLS',
    shown: 'none',
    doc: 'Lists of proxies that jobs and requests of the API may use by name: `dc=/lists/dc.txt,home=residential:/lists/home.txt`. See docs/proxies.md.',
    default: () => new Map(),
    parse: parseSharedPools,
    show: sharedPoolsText,
  }),
  secrets: setting<string>({
    env: 'SEINE_SECRETS',
    shown: '/run/secrets',
    doc: 'Folder of mounted secrets. Each file is one secret; jobs refer to it by file name. If set in the environment, jobs may read all of it.',
    default: () => '/run/secrets',
    parse: text,
  }),
  jobSecrets: {
    ...setting<string[] | null>({
      env: 'SEINE_JOB_SECRETS',
      shown: 'those that start with `SEINE_SECRET_`',
      doc: 'Further secrets that jobs may read: environment variables, mounted secrets, and paths of files or folders, separated by commas.',
      default: () => null,
      parse: (text) => text.split(',').flatMap((name) => name.trim() || []),
      show: (names) => names?.join(',') ?? 'none',
    }),
    environmentOnly: true,
  },
  jobCommands: {
    ...setting<string[] | null>({
      env: 'SEINE_JOB_COMMANDS',
      shown: 'any; none with `allowPrivate` `never`',
      doc: 'Programs that `notify` of a job in YAML or JSON may run, separated by commas: `notify-send,./tell-me.sh`. Jobs with code run what they want.',
      default: () => null,
      parse: (text) => text.split(',').flatMap((name) => name.trim() || []),
      show: (names) => names?.join(',') ?? 'any',
    }),
    environmentOnly: true,
  },
  hostLogDays: setting<number>({
    env: 'SEINE_HOST_LOG_DAYS',
    shown: '365',
    doc: 'Days to keep entries in the logs of hosts, 1 to 36,500. Older ones are cut at a checkpoint, see docs/politeness.md.',
    default: () => 365,
    parse: integer(1, 36_500),
  }),
  log: setting<'quiet' | 'error' | 'warn' | 'info' | 'debug'>({
    env: 'SEINE_LOG',
    shown: 'warn',
    doc: 'What to write to standard error besides progress: `error`, `warn`, `info`, or `debug`, which also shows where errors come from and every batch.',
    default: () => 'warn',
    parse: oneOf('quiet', 'error', 'warn', 'info', 'debug'),
  }),
  logFormat: setting<'text' | 'json'>({
    env: 'SEINE_LOG_FORMAT',
    shown: 'text',
    doc: '`text` for people, or `json` for programs: one line for each event, see docs/monitoring.md.',
    default: () => 'text',
    parse: oneOf('text', 'json'),
  }),
  logFile: setting<string | null>({
    env: 'SEINE_LOG_FILE',
    shown: 'none',
    doc: 'File for the log instead of standard error. At 10 MB it becomes `.1`, and five of those are kept.',
    default: () => null,
    parse: text,
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;
export type Config = { [Name in SettingName]: ReturnType<(typeof SETTINGS)[Name]['default']> };
