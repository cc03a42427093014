import { SeineError } from '../core/errors.ts';
import { fixedThreads, LOOK_MS, type ThreadRange } from '../core/scaling/threads.ts';
import { hideCredentials } from '../core/text/redact.ts';
import { jobEnvironment } from './job-environment.ts';
import { type Config, SETTINGS, type SettingName, threadsByDefault } from './schema.ts';
import { makeReadSecret, type ReadSecret, readSetting } from './secrets.ts';
import { readSettingsFile, type SettingsFile } from './settings-file.ts';
import { type TraceSettings, tracesOf } from './traces.ts';

type Origin = 'flag' | 'environment' | 'file' | 'default';

/** Where `s3://` is, for whoever opens something there. */
export function s3Of(config: Config): {
  endpoint: string | null;
  region: string | null;
  pathStyle: boolean | null;
} {
  return { endpoint: config.s3Endpoint, region: config.s3Region, pathStyle: config.s3PathStyle };
}

/** How Lambda is called. */
export function lambdaOf(config: Config): {
  endpoint: string | null;
  region: string | null;
  credentials: string | null;
  concurrency: number;
  browserFunction: string | null;
} {
  const { lambdaEndpoint, lambdaRegion, lambdaCredentials, lambdaConcurrency, lambdaBrowserFunction } =
    config;
  return {
    endpoint: lambdaEndpoint,
    region: lambdaRegion,
    credentials: lambdaCredentials,
    concurrency: lambdaConcurrency,
    browserFunction: lambdaBrowserFunction,
  };
}

/** Where traces go; null when nobody asked for them. */
export function traceSettings(env: NodeJS.ProcessEnv = process.env): TraceSettings | null {
  return tracesOf(env);
}

/** What a process that is started gets: everything that this one has, and some more. */
export function environmentWith(
  more: Record<string, string>,
  env: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  return { ...env, ...more };
}

/**
 * Shows only this environment to all code of this process from now on. The function that it gives runs something that
 * needs the whole one, such as a search for credentials.
 */
export function hideEnvironment(shown: Record<string, string>): <T>(work: () => Promise<T>) => Promise<T> {
  const whole = process.env;
  let atWork = 0;
  process.env = shown;
  return async (work) => {
    atWork++;
    process.env = whole;
    try {
      return await work();
    } finally {
      if (--atWork === 0) process.env = shown;
    }
  };
}

/** The whole environment while it is hidden, and how many hide it. */
const hidden: { whole: NodeJS.ProcessEnv | null; count: number } = { whole: null, count: 0 };

/** Shows only this environment while something runs: the code of a job, which runs when it is loaded. */
export function withEnvironment(shown: Record<string, string>): <T>(work: () => Promise<T>) => Promise<T> {
  return async (work) => {
    hidden.whole ??= process.env;
    hidden.count++;
    process.env = shown;
    try {
      return await work();
    } finally {
      // A server may load several at the same time: the last one shows what was there before the first.
      if (--hidden.count === 0) {
        process.env = hidden.whole;
        hidden.whole = null;
      }
    }
  };
}

/** Whoever starts a worker for jobs of others has to allow private addresses, as the job has to. */
export function allowPrivateElsewhere({ config, origins }: LoadedConfig): 'job' | 'never' {
  return origins.allowPrivate === 'default' ? 'never' : config.allowPrivate;
}

/** How many worker threads there are: the most, and the range in which they follow the work. */
export function threadsOf({ workers, workersKeepSeconds }: Config): {
  workers: number;
  threads: ThreadRange;
} {
  if (typeof workers === 'number') return { workers, threads: fixedThreads(workers) };
  const range = workers ?? threadsByDefault();
  return { workers: range.max, threads: { ...range, keepMs: workersKeepSeconds * 1_000, lookMs: LOOK_MS } };
}

/** How workers have their browsers. */
export function browserOf(config: Config): {
  path: string | null;
  sandbox: 'auto' | 'try' | 'on' | 'off';
  pages: number | null;
} {
  const { browserPath, browserSandbox, browserPages } = config;
  return { path: browserPath, sandbox: browserSandbox, pages: browserPages };
}

/** Where workers listen for a scraping API; undefined when nowhere. */
export function callbacksOf(config: Config): { host: string; port: number; url: string } | undefined {
  const { apiCallbackListen: listen, apiCallbackUrl: url } = config;
  if (listen === null) return undefined;
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  return { ...listen, url: url ?? `http://${host}:{port}` };
}

/** Where the state is, when it is not in the folder. */
export function storeOf(config: Config): {
  url: string;
  passwordFile: string | null;
  connections: number | null;
} | null {
  const { store, storePasswordFile, storeConnections } = config;
  return store === null
    ? null
    : { url: store, passwordFile: storePasswordFile, connections: storeConnections };
}

export interface LoadedConfig {
  config: Config;
  origins: Record<SettingName, Origin>;
  /** Where each was said: `--dir`, `SEINE_DIR`, the path of the settings file; `default` otherwise. */
  places: Record<SettingName, string>;
  readSecret: ReadSecret;
  /** What code of jobs sees of the environment. */
  jobEnvironment: Record<string, string>;
}

type Flags = Partial<Record<SettingName, string>>;

/** With the settings file, which a flag or the environment names or the working directory holds. */
export async function loadSettings(
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
  cwd: string = process.cwd(),
): Promise<LoadedConfig> {
  const named = flags.config ?? (env[SETTINGS.config.env] || null);
  return loadConfig(flags, env, await readSettingsFile(named, cwd));
}

/** Flags win over the environment, the environment over the settings file, that over defaults. The only reader of the environment. */
export function loadConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
  file: SettingsFile | null = null,
): LoadedConfig {
  const config: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  const places: Record<string, string> = {};
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const given = findGiven(name as SettingName, flags, env, file);
    const value = given === null ? setting.default() : setting.parse(given.text);
    if (given !== null && value === null) {
      const shown = setting.secret ? '' : `: '${hideCredentials(given.text)}'`;
      throw new SeineError(`invalid value for ${given.said}${shown}`, { hint: setting.doc });
    }
    config[name] = value;
    origins[name] = given?.origin ?? 'default';
    places[name] = given?.place ?? 'default';
  }
  const loaded = config as Config;
  if (loaded.store !== null && loaded.storePasswordFile === null)
    loaded.store = withPassword(loaded.store, env.PGPASSWORD);
  return {
    config: loaded,
    origins: origins as Record<SettingName, Origin>,
    places: places as Record<SettingName, string>,
    readSecret: makeReadSecret({
      dir: loaded.secrets,
      isDirListed: origins.secrets === 'environment',
      listed: loaded.jobSecrets ?? [],
      proxyPools: loaded.proxyPools,
      env,
    }),
    jobEnvironment: jobEnvironment(env, loaded.jobSecrets ?? []),
  };
}

/** The driver would look for it in the environment at each connection, which may be hidden by then. */
function withPassword(store: string, password: string | undefined): string {
  const url = URL.parse(store);
  if (url === null || url.host === '' || url.password !== '' || !password) return store;
  url.password = encodeURIComponent(password);
  return url.href;
}

interface Given {
  text: string;
  origin: Origin;
  place: string;
  /** How a message names it. */
  said: string;
}

function findGiven(
  name: SettingName,
  flags: Flags,
  env: NodeJS.ProcessEnv,
  file: SettingsFile | null,
): Given | null {
  const flag = flags[name];
  if (flag !== undefined) return { text: flag, origin: 'flag', place: `--${name}`, said: `--${name}` };
  const { env: variable, secret } = SETTINGS[name];
  // An empty variable counts as none.
  const text = env[variable] || undefined;
  const secretPath = secret ? env[`${variable}_FILE`] || undefined : undefined;
  if (text !== undefined || secretPath !== undefined)
    return choose({
      text,
      secretPath,
      origin: 'environment',
      names: [variable, `${variable}_FILE`],
      place: null,
    });
  if (!file) return null;
  const inFile = { text: file.texts[name], secretPath: file.secretFiles[name] };
  if (inFile.text === undefined && inFile.secretPath === undefined) return null;
  return choose({ ...inFile, origin: 'file', names: [name, `${name}File`], place: file.path });
}

/** A value itself, or the file that holds it. */
function choose(found: {
  text: string | undefined;
  secretPath: string | undefined;
  origin: Origin;
  names: [plain: string, file: string];
  place: string | null;
}): Given {
  const [plain, byFile] = found.names;
  const where = found.place === null ? '' : ` in ${found.place}`;
  if (found.text !== undefined && found.secretPath !== undefined)
    throw new SeineError(`${plain} and ${byFile}${where} are both set`, { hint: 'keep one of them' });
  const name = found.text === undefined ? byFile : plain;
  return {
    text: found.text ?? readSetting(found.secretPath!, `${byFile}${where}`),
    origin: found.origin,
    place: found.place ?? name,
    said: `${name}${where}`,
  };
}
