import type { FetchMethod } from '../escalation/escalation.ts';
import type { WorkerTimes } from '../explain/slot-states.ts';
import type { JobSpec } from '../job-schema/job.ts';
import type { LastVisit, Meta } from '../model.ts';
import type { Discovered, Outcome, QualityDelta, RequestFailure, RobotsOutcome } from './outcome.ts';

/** The wire format between coordinator and workers: plain JSON, self-contained, no bodies. */
export const WIRE_VERSION = 3;

/**
 * The right to send requests to one host, good from `startAt` to `endAt` only.
 * The next permit for the host never starts before `endAt`, and the last request
 * under this one is sent at `endAt - gapMs` at the latest, so the gap holds between
 * permits without anyone asking anyone.
 */
export interface Permit {
  host: string;
  /** Epoch milliseconds. */
  startAt: number;
  endAt: number;
  /** Least time between two requests; 0 means only parallelism limits. */
  gapMs: number;
  /** Each gap is longer by a random share of it up to this, and now and then much longer. */
  jitter?: number;
  parallel: number;
  /** Where the host has allowed hours that end soon: no request leaves after this, whatever `endAt` says. */
  closesAt?: number;
  /**
   * There when the host may be banning us, or may be down: this page, which answered before, is requested first, and
   * nothing else unless it answers. Null when the task itself is the probe.
   */
  probe?: { url: string | null };
  /** What pages of the host take to answer, where it answered lately: much slower ones must not hold up the others. */
  usualMs?: number;
  /** Where it was learned how long requests of the host take: the first request of a page may take so long. */
  timeoutMs?: number;
  /** After so many refused pages in a row nothing more is sent. */
  refusalsMax?: number;
  /** There during the slow start of the host: so many pages answered; parallel requests grow with the next. */
  answered?: number;
  /** There when the host is asked at a pace for each address that requests come from: `core/pace/address-pace.ts`. */
  addresses?: PermitAddresses;
}

/** The gap of the permit is the least for all; an address may have to keep a longer one. */
interface PermitAddresses {
  /** Least time between two requests from one address, for addresses that are known. */
  gapsMs: Record<string, number>;
  /** The same for all others. */
  otherMs: number;
  /** Permits of the host that are used at the same time, each by another address. */
  lanes: number;
  /** A page that answered before: where the address is refused too often, it is requested to tell a ban. */
  knownPage: string | null;
}

/** What became of the page that a probe requests first. */
export type ProbeResult = 'answered' | 'refused' | 'failed';

export interface BatchTask {
  id: number;
  url: string;
  /** Index into `permits`. */
  permit: number;
  depth: number;
  route: string | null;
  attempt: number;
  /** How often the host asked for fewer requests instead of answering; absent when it never did. */
  throttles?: number;
  hops: number;
  meta: Meta | null;
  /** Null at the first visit. */
  lastVisit: LastVisit | null;
  /** The page that links here, for requests that look like a browser's. */
  referrer?: string;
  /** How to ask for it; the plain way when absent. */
  fetchMethod?: FetchMethod;
  /** There whenever the fetch method names a pool: without it nothing may be sent. */
  through?: ProxyChoice;
}

/** What a batch knows of a proxy: how logs name it, and where it is, with its credentials. Never shown, never stored. */
export interface BatchProxy {
  id: string;
  url: string;
}

/** Indexes into the batch's proxies: tried in this order, or each worker takes the one that is its own. */
export interface ProxyChoice {
  among: number[];
  perWorker?: true;
}

/** A cookie on its way between coordinator and workers. Never logged, never exported. */
export interface WireCookie {
  name: string;
  value: string;
  domain: string;
  path: string;
  /** Epoch milliseconds; null for one that ends with its visit. */
  expiresAt: number | null;
  secure: boolean;
  hostOnly: boolean;
}

/** What an identity was given by an origin; the honest one is null. */
export interface OriginCookies {
  origin: string;
  identity: string | null;
  cookies: WireCookie[];
}

/** robots.txt of `origin`, wanted before its pages; `url` differs after a redirect. */
export interface RobotsFetch {
  origin: string;
  url: string;
  permit: number;
  /** The permit of the tasks that wait for it, where it is asked at another host: they come back as deferred. */
  for?: number;
  /** As for the tasks that it is wanted for. */
  through?: ProxyChoice;
}

export interface BatchJob {
  id: number;
  name: string;
  /** Workers compile a spec once and keep it by this hash. */
  specHash: string;
  spec: JobSpec;
  /** Blob key of the job's code, when it has handlers. */
  bundle: string | null;
  /**
   * Changes whenever a report was lost or refused. Workers do not report a link twice within
   * an epoch; a new one makes them forget, so links of a lost report are found again.
   */
  epoch: string;
}

export const WORKER_KINDS = ['http', 'browser'] as const;
export type WorkerKind = (typeof WORKER_KINDS)[number];

export interface Batch {
  version: typeof WIRE_VERSION;
  id: number;
  job: BatchJob;
  /** What its tasks need of a worker; one with a browser can do everything. */
  needs: WorkerKind;
  /** Its tasks may kill their worker: it runs on one of its own. */
  suspects?: true;
  /** The worker must have answered by then; what is left is deferred. */
  budgetMs: number;
  /** Where the job has a limit of bytes: what this batch may receive. Tasks beyond it are deferred. */
  bytesMax?: number;
  permits: Permit[];
  robots: RobotsFetch[];
  tasks: BatchTask[];
  /** Those that its tasks may go through. */
  proxies?: BatchProxy[];
  /** Key of the remote scraping API, for tasks that go there. */
  apiKey?: string;
  /** Header values that are secrets, by origin. Like the proxies never shown, never stored. */
  secretHeaders?: Record<string, Record<string, string>>;
  /** Cookies and storage of a logged-in browser, as Playwright writes them. A secret, too. */
  loginState?: string;
  /** There when the job keeps cookies: those of the origins and identities in the batch. */
  cookies?: OriginCookies[];
  /** Parts append their number and the file ending. */
  archiveKey: string;
  /** The same for packed media. */
  packKey: string;
}

/** What became of a permit since the last report: lets the coordinator hand out unused time again. */
export interface PermitUse {
  host: string;
  sent: number;
  /** Epoch milliseconds of the last request, or null when none was sent. */
  lastSentAt: number | null;
  /** No further request will be sent under this permit. */
  finished: boolean;
  /**
   * There when the host was given back, or only late pages are left: nothing more begins under this permit, and so many of its
   * tasks are under way.
   */
  underWay?: number;
  /** The shortest time between two requests of this permit since the last report; null with fewer than two. */
  smallestGapMs?: number | null;
  /** The first request since the last report; null when none was sent. */
  firstSentAt?: number | null;
  /** Of the page that a probe requests first, once it is known; and why it failed. */
  probe?: ProbeResult;
  probeFailure?: RequestFailure;
}

/**
 * What a worker says of a batch. A batch with a slow host in it answers in parts, so that
 * finished tasks need not wait for the slow ones; each task is in exactly one part.
 */
export interface Report {
  version: typeof WIRE_VERSION;
  batchId: number;
  part: number;
  final: boolean;
  worker: string;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  /** What the batch spent its time with since the last report; milliseconds, each in one state. */
  times?: WorkerTimes;
  permits: PermitUse[];
  robots: RobotsOutcome[];
  outcomes: Outcome[];
  /** Links of tasks whose outcome comes in a later part, with the rest of them: see `linksPerReport`. */
  found?: { taskId: number; links: Discovered[] }[];
  /** Cookies that changed: all that the origin and identity have now. */
  cookies?: OriginCookies[];
  quality: QualityDelta[];
  /** Proxies that failed before another was tried for the same task; outcomes tell of the last one. */
  proxyFaults?: { id: string; count: number }[];
  archive: { key: string; bytes: number } | null;
  /** The shard of packed media. */
  pack?: { key: string; bytes: number } | null;
  /** What was fetched could not be stored: those tasks come back as deferred. For people. */
  trouble?: string | null;
  /** The trouble is that there was no room, which is waited for. */
  storageFull?: boolean;
}
