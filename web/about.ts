import { signal } from '@preact/signals';
import { type About, ApiProblem, call, needsKey } from './api.ts';

/** What server this is, and what the reader may do here. */
export const about = signal<About | null>(null);

let known: Promise<void> = Promise.resolve();

export function loadAbout(): Promise<void> {
  known = load();
  return known;
}

async function load(): Promise<void> {
  try {
    about.value = await call<About>('/server');
  } catch {
    // Without it, everything is offered, and what is not allowed is refused.
    about.value = null;
  }
}

export function may(scope: 'write' | 'admin'): boolean {
  const known = about.value;
  return known === null || (!known.read_only && known.scopes.includes(scope));
}

/** Null where the server does not have the call, such as `/jobs/{id}/series`, or nothing for it. */
export async function callIfThere<T>(
  pattern: string,
  path: string,
  options: { signal?: AbortSignal } = {},
): Promise<T | null> {
  await known;
  if (!about.value?.calls.includes(`GET ${pattern}`)) return null;
  try {
    return await call<T>(path, options);
  } catch (error) {
    if (error instanceof ApiProblem && (error.status === 404 || error.status === 403)) return null;
    throw error;
  }
}

export async function logIn(key: string): Promise<void> {
  await call('//login', { method: 'POST', body: { key } });
  needsKey.value = false;
  await loadAbout();
}

export async function logOut(): Promise<void> {
  await call('//logout', { method: 'POST' });
  needsKey.value = true;
}
