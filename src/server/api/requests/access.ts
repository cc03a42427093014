import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { SharedPool } from '../../../core/proxies/shared-pools.ts';
import type { Logger } from '../../../ports/ambient.ts';
import type { Blobs } from '../../../ports/blobs.ts';
import type { ReadStore } from '../../../ports/store/read-store.ts';
import type { ServerPlace } from '../../server-place.ts';
import type { RowRoom } from '../scrape/row-room.ts';
import type { Caller, Work } from './work.ts';

export type { Caller };

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
  /** False once the key is revoked: what is still being sent to it ends. */
  isKnown(caller: Caller): Promise<boolean>;
  take(caller: Caller, now: number): RateLimitState;
  /**
   * Notes pages of a request; null when the key has room for them. What is refused is not noted. 0 pages: how many there
   * will be is not known yet, and room for one is enough.
   */
  admit(caller: Caller, used: { pages: number; cost?: number }): Promise<PagesRefused | null>;
  /** Keys have changed: nothing that is remembered of them counts. */
  forget(): void;
}

interface NewWebhook {
  url: string;
  events?: string[];
  metadata?: unknown;
}

export interface WebhookPort {
  /** Throws what is wrong with it, before there is a job that would have to go again. */
  check(hook: NewWebhook): void;
  /** Registers the callback of a job, in the transaction that makes the job or before it exists. */
  attach(jobId: number, hook: NewWebhook, caller: Caller): Promise<void>;
}

/** What the routes work with. */
export interface ApiContext extends Work {
  /** What the store has, read on connections of its own. */
  reads: ReadStore;
  blobs: Blobs;
  access: AccessControl;
  webhooks: WebhookPort;
  place: ServerPlace;
  logger: Logger;
  /** Whether jobs of the API may fetch private addresses: `serve --allow-private`. */
  allowPrivate: boolean;
  /** For rows of lists that are being read. */
  rowRoom: RowRoom;
  /** Lists of proxies that requests may use by name. */
  proxyPools: ReadonlyMap<string, SharedPool>;
  /** Nothing can be changed: another process works here, or none does. */
  readOnly?: boolean;
  now(): number;
}

export type RoutePlugin = (app: FastifyInstance, context: ApiContext) => void;
