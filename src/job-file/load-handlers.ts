import { hash } from 'node:crypto';
import type { Blobs } from '../ports/blobs.ts';
import { CODE_NAMES, isRecordSchema, type JobHandlers, type RouteCode } from '../worker/job/route-code.ts';

/** At its end, and a comment: a comment more in the job file is no other code. */
const SOURCE_MAP = /\n\/\/# sourceMappingURL=data:application\/json;base64,[A-Za-z0-9+/=]+\n$/;

/** By the hash of the code, without its source map. */
export function bundleKeyOf(code: Uint8Array): string {
  const text = Buffer.from(code.buffer, code.byteOffset, code.byteLength).toString('latin1');
  const mapAt = text.search(SOURCE_MAP);
  return `bundles/${hash('sha256', mapAt === -1 ? code : code.subarray(0, mapAt + 1), 'hex')}.mjs`;
}

/** Runs the code of a job, which sees what it may see of the environment. */
export type RunCode = <T>(work: () => Promise<T>) => Promise<T>;

/** Where the whole thread or process has an environment for jobs. */
export const asItIs: RunCode = (work) => work();

/** The handlers of a stored bundle, by route. The bytes must be what their name says. */
export async function loadHandlers(blobs: Blobs, bundle: string, run: RunCode): Promise<JobHandlers> {
  const code = await blobs.read(bundle);
  if (!code) throw new Error(`the code of the job is missing: ${bundle}`);
  if (bundleKeyOf(code) !== bundle) throw new Error(`the code of the job was changed: ${bundle}`);
  return handlersOf(await run(() => importCode(code)));
}

/** One self-contained module; a data URL needs no file and no folder. */
export async function importCode(code: Uint8Array): Promise<unknown> {
  const module = await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`);
  return module.default;
}

/** The functions and schema objects of a job, by route; the rest of it is data. */
export function handlersOf(definition: unknown): JobHandlers {
  const handlers = new Map<string, RouteCode>();
  const routes = (definition as { routes?: unknown } | null)?.routes;
  for (const route of Array.isArray(routes) ? (routes as unknown[]) : []) {
    if (typeof route !== 'object' || route === null) continue;
    const { name, ...rest } = route as Record<string, unknown>;
    const code = codeOf(rest);
    if (typeof name === 'string' && Object.keys(code).length > 0) handlers.set(name, code);
  }
  return handlers;
}

function codeOf(route: Record<string, unknown>): RouteCode {
  const code: Record<string, unknown> = {};
  for (const name of CODE_NAMES) if (typeof route[name] === 'function') code[name] = route[name];
  if (isRecordSchema(route.schema)) code.schema = route.schema;
  return code;
}
