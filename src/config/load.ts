import { SeineError } from '../core/errors.ts';
import { hideCredentials } from '../core/redact.ts';
import { type Config, SETTINGS, type SettingName } from './schema.ts';
import { makeReadSecret, type ReadSecret } from './secrets.ts';

export type Origin = 'flag' | 'environment' | 'default';

/** Where `s3://` is, for whoever opens something there. */
export function s3Of(config: Config): {
  endpoint: string | null;
  region: string | null;
  pathStyle: boolean | null;
} {
  return { endpoint: config.s3Endpoint, region: config.s3Region, pathStyle: config.s3PathStyle };
}

/** Where the state is, when it is not in the folder. */
export function storeOf(config: Config): {
  url: string;
  passwordFile: string | null;
  connections: number;
} | null {
  const { store, storePasswordFile, storeConnections } = config;
  return store === null
    ? null
    : { url: store, passwordFile: storePasswordFile, connections: storeConnections };
}

export interface LoadedConfig {
  config: Config;
  origins: Record<SettingName, Origin>;
  readSecret: ReadSecret;
}

/** Flags win over the environment, the environment over defaults. The only reader of the environment. */
export function loadConfig(
  flags: Partial<Record<SettingName, string>>,
  env: NodeJS.ProcessEnv = process.env,
): LoadedConfig {
  const config: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  for (const [name, setting] of Object.entries(SETTINGS)) {
    const flag = flags[name as SettingName];
    const variable = env[setting.env];
    const given = flag ?? (variable === '' ? undefined : variable);
    if (given === undefined) {
      config[name] = setting.default();
      origins[name] = 'default';
      continue;
    }
    const value = setting.parse(given);
    if (value === null) {
      const where = flag === undefined ? setting.env : `--${name}`;
      const what = setting.secret ? 'what was given' : `'${hideCredentials(given)}'`;
      throw new SeineError(`${where} cannot be ${what}`, { hint: setting.doc });
    }
    config[name] = value;
    origins[name] = flag === undefined ? 'environment' : 'flag';
  }
  const loaded = config as Config;
  return {
    config: loaded,
    origins: origins as Record<SettingName, Origin>,
    readSecret: makeReadSecret(loaded.secrets, env),
  };
}
