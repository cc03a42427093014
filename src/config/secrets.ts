import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SeineError } from '../core/errors.ts';
import type { SecretRef } from '../core/job-schema/proxies.ts';

/** A list of ten thousand proxies is some 800 KB. */
const SECRET_BYTES_MAX = 4 * 1024 * 1024;

/** Reads what a job only refers to. What it returns is never logged, and no message quotes it. */
export type ReadSecret = (ref: SecretRef) => Promise<string>;

/** `dir`: where secrets are mounted. */
export function makeReadSecret(dir: string, env: NodeJS.ProcessEnv): ReadSecret {
  return async (ref) => {
    if ('env' in ref) {
      const value = env[ref.env];
      if (value === undefined || value.trim() === '')
        throw new SeineError(`the environment variable ${ref.env} is not set`, {
          hint: 'the job reads a secret from it',
        });
      return value;
    }
    return readSecretFile('file' in ref ? ref.file : join(dir, ref.secret));
  };
}

async function readSecretFile(path: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new SeineError(`cannot read the secret ${path} (${code})`, {
      hint: 'the job reads a secret from it',
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
