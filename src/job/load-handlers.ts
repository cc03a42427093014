import { hash } from 'node:crypto';
import type { Blobs } from '../ports/blobs.ts';
import type { Handlers } from '../worker/compile-job.ts';
import type { Handler } from '../worker/page.ts';

export function bundleKeyOf(code: Uint8Array): string {
  return `bundles/${hash('sha256', code, 'hex')}.mjs`;
}

/** The handlers of a stored bundle, by route. The bytes must be what their name says. */
export async function loadHandlers(blobs: Blobs, bundle: string): Promise<Handlers> {
  const code = await blobs.read(bundle);
  if (!code) throw new Error(`the job's code ${bundle} is gone`);
  if (bundleKeyOf(code) !== bundle) throw new Error(`the job's code ${bundle} was changed`);
  return handlersOf(await importCode(code));
}

/** One self-contained module; a data URL needs no file and no folder. */
export async function importCode(code: Uint8Array): Promise<unknown> {
  const module = await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`);
  return module.default;
}

export function handlersOf(definition: unknown): Handlers {
  const handlers = new Map<string, Handler>();
  const routes = (definition as { routes?: { name?: string; handler?: unknown }[] } | null)?.routes;
  for (const route of Array.isArray(routes) ? routes : []) {
    if (typeof route?.handler === 'function' && route.name)
      handlers.set(route.name, route.handler as Handler);
  }
  return handlers;
}
