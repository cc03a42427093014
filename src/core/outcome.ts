import type { FailureCode, SkipCode } from './failures.ts';
import type { Meta } from './model.ts';

/** What one request looked like, for the attempt log and host statistics. */
export interface Trace {
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  httpStatus: number | null;
  /** Bytes received on the wire as the body. */
  bytes: number;
}

/** A link that the worker found in scope; the coordinator dedupes it. */
export interface Discovered {
  url: string;
  host: string;
  priority: number;
  route: string | null;
  meta?: Meta;
}

/** Serialised and hashed by the worker: the coordinator's thread is the scarce one. */
export interface RecordDraft {
  key: string;
  json: string;
  hash: string;
}

export interface StoredPage {
  /** The route that took the page, by name or by URL. */
  route: string | null;
  httpStatus: number;
  contentType: string | null;
  /** Decoded body: its size and hash. */
  bytes: number;
  sha256: string;
  /** Within the batch's archive; null when the job keeps no pages. */
  archive: { offset: number; length: number } | null;
  etag: string | null;
  lastModified: string | null;
}

/** Exactly one per task of a batch. Expected trouble is data here, never a throw. */
export type Outcome =
  | {
      kind: 'fetched';
      taskId: number;
      page: StoredPage;
      links: Discovered[];
      records: RecordDraft[];
      trace: Trace;
    }
  | { kind: 'unchanged'; taskId: number; page: StoredPage | null; links: Discovered[]; trace: Trace }
  | { kind: 'redirected'; taskId: number; to: string; page: StoredPage; trace: Trace }
  | { kind: 'skipped'; taskId: number; code: SkipCode; detail: string | null; trace: Trace | null }
  | {
      kind: 'failed';
      taskId: number;
      code: FailureCode;
      detail: string;
      page: StoredPage | null;
      /** From Retry-After, already capped. */
      retryAfterMs: number | null;
      trace: Trace | null;
    }
  | { kind: 'deferred'; taskId: number };

export type OutcomeKind = Outcome['kind'];

/** robots.txt is fetched by a worker like any page; its answer goes to the host, not to a task. */
export type RobotsOutcome =
  | { kind: 'text'; origin: string; text: string; trace: Trace }
  /** 4xx: RFC 9309 says everything is allowed. */
  | { kind: 'absent'; origin: string; trace: Trace }
  | { kind: 'redirected'; origin: string; to: string; trace: Trace }
  | { kind: 'failed'; origin: string; code: FailureCode; detail: string; trace: Trace | null }
  | { kind: 'deferred'; origin: string };
