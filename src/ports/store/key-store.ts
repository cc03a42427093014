import type { KeyLimits, Scope } from '../../core/keys/api-key.ts';

/** An API key as the store knows it: never the key itself. */
export interface ApiKey {
  /** Owner of the jobs that are made with it. */
  id: string;
  name: string;
  /** SHA-256 of the key, in hex. */
  hash: string;
  scope: Scope;
  limits: KeyLimits;
  createdAt: number;
  revokedAt: number | null;
}

/** What a key has used on one day of UTC. */
export interface KeyUsage {
  pages: number;
  cost: number;
  requests: number;
  browserSeconds: number;
}

export interface KeyStore {
  /** Null when another key that is not revoked has the name. */
  create(key: Omit<ApiKey, 'revokedAt'>): Promise<ApiKey | null>;
  /** The same, but the key of this id is replaced, also when it was revoked. */
  replace(key: Omit<ApiKey, 'revokedAt'>): Promise<ApiKey | null>;
  /** Those that are not revoked. */
  byHash(hash: string): Promise<ApiKey | null>;
  /** Also one that is revoked; null when there is none. */
  byId(id: string): Promise<ApiKey | null>;
  /** Whether there is one that is not revoked. */
  hasSome(): Promise<boolean>;
  /** The newest first, revoked ones too. */
  list(): Promise<ApiKey[]>;
  /** Null when there is none of this id. One that is revoked already stays as it is. */
  revoke(id: string, now: number): Promise<ApiKey | null>;
  /** Pages of its running jobs that are not finished. */
  pagesUnderWay(id: string): Promise<number>;
  /** Tasks of its running jobs that are out. */
  tasksOut(id: string): Promise<number>;
  /** What was used on the day so far; `day` counts days since 1970. */
  usage(id: string, day: number): Promise<KeyUsage>;
  /**
   * Adds to what was used, unless that exceeds `max`: then nothing is added, and the answer is false. Requests and seconds of
   * browsers are added by the settle.
   */
  use(
    id: string,
    day: number,
    used: Pick<KeyUsage, 'pages' | 'cost'>,
    max: { pages: number | null; cost: number | null },
  ): Promise<boolean>;
}
