import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { Job as ClientJob, Result } from '../src/client/client.ts';

/** The public API, as the page uses it. */

const BASE = '/api/v1';

export interface Counts {
  total: number;
  succeeded: number;
  failed: number;
  skipped: number;
  pending: number;
  running: number;
  rejected: number;
  duplicates: number;
  records: number;
  bytes: number;
  requests: number;
  retries: number;
}

export interface Job extends Omit<ClientJob, 'result'> {
  name: string;
  run: number;
  counts: Counts;
  reason: string | null;
  created_at: string;
  ended_at: string | null;
  priority: number;
}

export interface Task extends Result {
  detail: string | null;
  final_url: string;
  attempts: number;
  sha256: string | null;
  shots: { kind: string; key: string; type: string; bytes: number }[];
}

export interface Attempt {
  url: string;
  outcome: string;
  http_status: number | null;
  code: string | null;
  detail: string | null;
  started_at: string;
  duration_ms: number;
  bytes: number;
  fetcher: string | null;
  proxy: string | null;
  worker: string;
}

export interface RecordRow {
  key: string;
  url: string;
  data: Record<string, unknown>;
  updated_at: string;
}

export interface RecordVersion {
  data: Record<string, unknown>;
  from: string;
  until: string | null;
}

export interface About {
  version: string;
  node: string;
  /** Where it keeps things: for the operator alone. */
  store?: string;
  blobs?: string;
  dispatch?: string[];
  started_at: string;
  read_only: boolean;
  allow_private: boolean;
  key_id: string | null;
  scopes: string[];
  calls: string[];
}

/** An answer that is a problem; `code` is stable. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly remedy: string;
  readonly errors: { field: string; message: string }[];

  constructor(
    status: number,
    body: { detail?: string; code?: string; remedy?: string; errors?: ApiProblem['errors'] },
  ) {
    super(body.detail ?? `the server answered ${status}`);
    this.status = status;
    this.code = body.code ?? '';
    this.remedy = body.remedy ?? '';
    this.errors = body.errors ?? [];
  }
}

/** Set when the server asks for a key. */
export const needsKey = signal(false);

interface CallOptions {
  method?: string;
  body?: unknown;
  /** Of a body that is text. */
  type?: string;
  signal?: AbortSignal;
}

export async function call<T>(path: string, options: CallOptions = {}): Promise<T> {
  const { method = 'GET', body, type, signal: abort } = options;
  const isText = typeof body === 'string';
  const answer = await fetch(path.startsWith('//') ? path.slice(1) : BASE + path, {
    method,
    ...(abort ? { signal: abort } : {}),
    ...(body === undefined
      ? {}
      : {
          body: isText ? body : JSON.stringify(body),
          headers: { 'content-type': type ?? 'application/json' },
        }),
  });
  const text = await answer.text();
  let found: unknown = null;
  try {
    found = text === '' ? null : JSON.parse(text);
  } catch {
    found = null;
  }
  if (answer.ok) return found as T;
  if (answer.status === 401) needsKey.value = true;
  throw new ApiProblem(answer.status, (found ?? {}) as object);
}

/** A query string without what is empty. */
export function search(values: Record<string, string | number | null | undefined>): string {
  const given = Object.entries(values).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  );
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

interface Loaded<T> {
  data: T | null;
  error: ApiProblem | Error | null;
  isLoading: boolean;
  reload(): void;
}

/** What a call answers, again whenever `key` changes, and every few seconds if wanted while the page is seen. */
export function useLoad<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  { everyMs = 0 }: { everyMs?: number } = {},
): Loaded<T> {
  const [state, setState] = useState<{ key: string | null; data: T | null; error: Error | null }>({
    key: null,
    data: null,
    error: null,
  });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (key === null) return;
    const abort = new AbortController();
    load(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ key, data, error: null }),
      (error: Error) =>
        !abort.signal.aborted &&
        setState((last) => ({ key, data: last.key === key ? last.data : null, error })),
    );
    return () => abort.abort();
  }, [key, turn]);
  useEffect(() => {
    if (everyMs === 0 || key === null) return;
    const timer = setInterval(() => document.hidden || setTurn((last) => last + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, key]);
  const isOwn = state.key === key;
  return {
    data: isOwn ? state.data : null,
    error: isOwn ? state.error : null,
    isLoading: key !== null && !isOwn,
    reload: () => setTurn((last) => last + 1),
  };
}
