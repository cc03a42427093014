import { readFileSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { SeineError } from '../core/errors.ts';
import type { ProxyListRef, SecretRef, SecretUse } from '../core/job-schema/proxies.ts';
import type { SharedPool } from '../core/proxies/shared-pools.ts';
import { suggestion } from '../core/text/nearest-name.ts';
import { FOR_JOBS } from './job-environment.ts';

/** A list of ten thousand proxies is some 800 KB. */
const SECRET_BYTES_MAX = 4 * 1024 * 1024;

/** Reads what a job only refers to. What it returns is never logged, and no message quotes it. */
export type ReadSecret = (ref: ProxyListRef, use: SecretUse) => Promise<string>;

/** Which secrets the operator gives to jobs. */
interface SecretSettings {
  /** Where secrets are mounted. */
  dir: string;
  /** All that is mounted there is for jobs: the operator named the folder. */
  isDirListed: boolean;
  /** Variables, mounted secrets and paths. */
  listed: readonly string[];
  /** Lists of proxies that any job may use, by name. */
  proxyPools: ReadonlyMap<string, SharedPool>;
  env: NodeJS.ProcessEnv;
}

/** Whoever writes a job says where its secrets go, so it gets only those that the operator has listed. */
export function makeReadSecret(settings: SecretSettings): ReadSecret {
  const { dir, env } = settings;
  return async (ref, use) => {
    if ('shared' in ref) return readSecretFile(sharedPool(ref.shared, settings.proxyPools).file);
    if (!(await isForJobs(ref, use, settings))) throw notListed(ref, settings.listed);
    if ('env' in ref) {
      const value = env[ref.env];
      if (value === undefined || value.trim() === '')
        throw new SeineError(`the environment variable ${ref.env} is not set`, {
          hint: 'correct its path in the job or the option',
        });
      return value;
    }
    return readSecretFile('file' in ref ? ref.file : join(dir, ref.secret));
  };
}

/** Throws where the operator shares no such list. */
function sharedPool(name: string, pools: ReadonlyMap<string, SharedPool>): SharedPool {
  const found = pools.get(name);
  if (found) return found;
  throw new SeineError(`there is no shared proxy pool '${name}'${suggestion(name, [...pools.keys()])}`, {
    hint: 'the operator lists them in SEINE_PROXY_POOLS',
  });
}

async function isForJobs(
  ref: SecretRef,
  use: SecretUse,
  { dir, isDirListed, listed }: SecretSettings,
): Promise<boolean> {
  if ('env' in ref) return FOR_JOBS.test(ref.env) || listed.includes(ref.env);
  if ('secret' in ref) return isDirListed || FOR_JOBS.test(ref.secret) || listed.includes(ref.secret);
  if (use === 'own-place') return true;
  // A link must not lead out of a folder that is listed.
  const path = await realPathOf(ref.file);
  for (const place of isDirListed ? [...listed, dir] : listed) {
    const listedPath = await realPathOf(place);
    if (path === listedPath || path.startsWith(listedPath + sep)) return true;
  }
  return false;
}

function realPathOf(path: string): Promise<string> {
  return realpath(path).catch(() => resolve(path));
}

function notListed(ref: SecretRef, listed: readonly string[]): SeineError {
  const [what, name] =
    'env' in ref
      ? ['environment variable', ref.env]
      : 'file' in ref
        ? ['file', ref.file]
        : ['secret', ref.secret];
  const prefix = 'file' in ref ? '' : ', or rename it: names that start with SEINE_SECRET_ need no listing';
  return new SeineError(`the job reads the ${what} ${name}, which is not listed in SEINE_JOB_SECRETS`, {
    hint: `if the job may have it, set SEINE_JOB_SECRETS=${[...listed, name].join(',')}${prefix}`,
  });
}

async function readSecretFile(path: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new SeineError(`cannot read the secret ${path} (${code})`, {
      hint: 'correct its path in the job or the option',
    });
  }
  if (text.length > SECRET_BYTES_MAX) throw new SeineError(`the secret ${path} is too large`);
  if (text.trim() === '') throw new SeineError(`the secret ${path} is empty`);
  return text;
}

/** A setting that a file holds, as Docker and Kubernetes mount secrets. `name`: where the path was given. */
export function readSetting(path: string, name: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new SeineError(`cannot read ${path}, which ${name} names (${code})`, {
      hint: 'mount the secret there, or correct the path',
    });
  }
  if (text === '') throw new SeineError(`${path}, which ${name} names, is empty`);
  return text;
}
