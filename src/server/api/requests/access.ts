import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { AppSettings } from '../../../app/app.ts';
import type { Folder } from '../../../app/folder.ts';
import type { Scope } from '../../../core/keys/api-key.ts';
import type { Blobs } from '../../../ports/blobs.ts';
import type { ReadStore } from '../../../ports/read-store.ts';
import type { Store } from '../../../ports/store.ts';
import type { JobRemover } from '../../job-remover.ts';
import type { JobRunner } from '../../job-runner.ts';
import type { SettleWatch } from '../scrape/settle-watch.ts';

/** Who sent a request. */
export interface Caller {
  /** Null: the machine's user on loopback while there are no keys, or a command with the token of the folder. */
  keyId: string | null;
  scopes: ReadonlySet<Scope>;
  /** The browser sent the key by itself: only pages of this server may use it. */
  isByCookie?: true;
}

/** What the token bucket of a caller says; the numbers of the RateLimit headers. */
interface RateLimitState {
  allowed: boolean;
  limit: number;
  remaining: number;
  resetSeconds: number;
}

/** Why pages of a request are not accepted. */
export interface PagesRefused {
  detail: string;
  /** When it is worth trying again; null when that depends on pages that are under way. */
  retryAfterSeconds: number | null;
}

export interface AccessControl {
  /** Null: no key, or a wrong one. */
  authenticate(headers: IncomingHttpHeaders, remoteAddress: string): Promise<Caller | null>;
  take(caller: Caller, now: number): RateLimitState;
  /**
   * Notes pages of a request; null when the key has room for them. What is refused is not noted. 0 pages: how many there
   * will be is not known yet, and room for one is enough.
   */
  admit(caller: Caller, used: { pages: number; cost?: number }): Promise<PagesRefused | null>;
  /** Keys have changed: nothing that is remembered of them counts. */
  forget(): void;
}

export interface WebhookPort {
  /** Registers the callback of a job, in the transaction that makes the job or before it exists. */
  attach(
    jobId: number,
    hook: { url: string; events?: string[]; metadata?: unknown },
    caller: Caller,
  ): Promise<void>;
}

/** What the routes work with. */
export interface ApiContext {
  folder: Folder;
  store: Store;
  /** The same data, read on connections of its own. */
  reads: ReadStore;
  blobs: Blobs;
  runner: Pick<JobRunner, 'run' | 'has' | 'start' | 'workers' | 'slots'>;
  remover: Pick<JobRemover, 'look'>;
  access: AccessControl;
  webhooks: WebhookPort;
  settings: AppSettings;
  /** Whether jobs of the API may fetch private addresses: `serve --allow-private`. */
  allowPrivate: boolean;
  /** Nothing can be changed: another process works here, or none does. */
  readOnly?: boolean;
  watch: SettleWatch;
  now(): number;
}

export type RoutePlugin = (app: FastifyInstance, context: ApiContext) => void;
