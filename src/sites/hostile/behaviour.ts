import type { Socket } from 'node:net';
import type { FailureCode } from '../../core/failures.ts';

/** One thing that servers do to crawlers, with a path of its own: `/7-truncated-gzip`. */
export interface Behaviour {
  number: number;
  /** In kebab-case, as in the path. */
  name: string;
  cases: readonly HostileCase[];
}

/** What a careful crawler makes of it in the end, redirects followed and passing trouble tried again. */
export type Ending = 'fetched' | 'unchanged' | FailureCode;

export interface HostileCase {
  /** Below the path of the behaviour, like `/chain`; empty for the path itself. */
  path: string;
  /** One sentence on what the server does. */
  what: string;
  ending: Ending;
  /** Why it must end so, where that is not plain. */
  why?: string;
  /** Further endings that are right, for what depends on time and order. */
  or?: readonly Ending[];
  /** Of a second visit, where that is the point. */
  again?: Ending;
  /** How many paths below to visit, `/1`, `/2`, …, where one request shows nothing. */
  times?: number;
  /** Pages without end: following their links never stops by itself. */
  trap?: true;
  answer: Answer;
}

export type Answer = (visit: HostileVisit) => void;

/** One request, and the socket that it came by. */
export interface HostileVisit {
  socket: Socket;
  /** What follows the path of the case: empty, or from a slash on. */
  rest: string;
  query: string;
  /** Names in lower case. */
  headers: ReadonlyMap<string, string>;
  /** Of the client. */
  address: string;
  /** The case's own path. */
  base: string;
  /** Requests so far for this path, this one included. */
  count: number;
  web: HostileFacts;
}

/** What answers may know of the server. */
export interface HostileFacts {
  /** Without a slash at the end. */
  url: string;
  secure: Readonly<Record<SecurePort, string>>;
  /** Requests of an address for a case within the last milliseconds, this one included. */
  recent(visit: HostileVisit, withinMs: number): number;
}

/** Ports that speak TLS, each in its own way. */
export const SECURE_PORTS = ['trusted', 'expired', 'self-signed', 'wrong-host', 'stalled'] as const;
export type SecurePort = (typeof SECURE_PORTS)[number];

export function pathOf({ number, name }: Pick<Behaviour, 'number' | 'name'>): string {
  return `/${number}-${name}`;
}
