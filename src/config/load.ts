import { SeineError } from '../core/errors.ts';
import { type Config, SETTINGS, type SettingName } from './schema.ts';

export type Origin = 'flag' | 'environment' | 'default';

export interface LoadedConfig {
  config: Config;
  origins: Record<SettingName, Origin>;
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
      throw new SeineError(`${where} cannot be '${given}'`, { hint: setting.doc });
    }
    config[name] = value;
    origins[name] = flag === undefined ? 'environment' : 'flag';
  }
  return { config: config as Config, origins: origins as Record<SettingName, Origin> };
}
