import type { Via } from '../escalation/escalation.ts';
import type { FailureCode, SkipCode } from '../failures.ts';
import type { LastVisit, MediaRef, Meta, ShotRef } from '../model.ts';

/** What one request looked like, for the attempt log and host statistics. */
export interface Trace {
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  httpStatus: number | null;
  /** Bytes received on the wire as the body. */
  bytes: number;
  /** Absent for the plain way. */
  via?: Via;
  /** Pictures that a browser made meanwhile; stored before they are named here. */
  shots?: ShotRef[];
}

/** A request that has no page. */
export interface RequestFailure {
  code: FailureCode;
  detail: string;
  trace: Trace | null;
}

/** A link that the worker found in scope; the coordinator dedupes it. */
export interface Discovered {
  url: string;
  host: string;
  priority: number;
  route: string | null;
  meta?: Meta;
  /** Named by a sitemap or a page count, like a row of a source: as deep as its page, and no trap budget. */
  listed?: true;
  /** Epoch milliseconds, as a sitemap says. */
  modifiedAt?: number;
}

/** Entries of a list that are of no use: how many, and the first of them for people. */
export interface RejectedEntries {
  count: number;
  first: { place: string; reason: string }[];
}

/** Serialised and hashed by the worker: the coordinator's thread is the scarce one. */
export interface RecordDraft {
  key: string;
  json: string;
  /** Of the data in canonical order, so that equal data has an equal hash. */
  hash: string;
  /** Its route names the key: fields of other tasks with the same key stay. Otherwise the record is replaced. */
  merge: boolean;
}

/** What the records of a batch looked like, by route; adds up to `QualityRow`. */
export interface QualityDelta {
  route: string;
  records: number;
  invalid: number;
  /** Pages that should have a record and had nothing for one; 0 when absent. */
  blank?: number;
  filled: Record<string, number>;
}

/** Where the record of a page is in its file. `sha256`: of the bytes there, where a Content-Encoding makes them others. */
interface ArchivedAt {
  offset: number;
  length: number;
  sha256?: string;
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
  archive: ArchivedAt | null;
  /** For objects that are stored by themselves instead of in the archive. */
  media: MediaRef | null;
  robotsTags: string | null;
  etag: LastVisit['etag'];
  lastModified: LastVisit['lastModified'];
}

/** Exactly one per task of a batch. Expected trouble is data here, never a throw. */
export type Outcome =
  | {
      kind: 'fetched';
      taskId: number;
      page: StoredPage;
      links: Discovered[];
      records: RecordDraft[];
      /** URLs of media that the page shows; their tasks are among the links. */
      shows: string[];
      /** What was left out of a sitemap, for people. */
      note?: string;
      rejected?: RejectedEntries;
      trace: Trace;
    }
  /** The same as at the last visit: a 304 (no page), or equal bytes (a page that is not archived again). */
  | { kind: 'unchanged'; taskId: number; page: StoredPage | null; trace: Trace }
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
  /** `until`: not to be tried before. `last`: after all others of its host. */
  | { kind: 'deferred'; taskId: number; until?: number; last?: true };

export type OutcomeKind = Outcome['kind'];

/** robots.txt is fetched by a worker like any page; its answer goes to the host, not to a task. */
export type RobotsOutcome =
  | { kind: 'text'; origin: string; text: string; trace: Trace }
  /** 4xx: RFC 9309 says everything is allowed. */
  | { kind: 'absent'; origin: string; trace: Trace }
  | { kind: 'redirected'; origin: string; to: string; trace: Trace }
  | ({ kind: 'failed'; origin: string } & RequestFailure)
  | { kind: 'deferred'; origin: string };
