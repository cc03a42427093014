import { type BatchTrace, TRACED_PAGES_MAX, type TracedPage } from './batch-trace.ts';

/**
 * The spans of a batch, by the semantic conventions of OpenTelemetry:
 *
 *   batch                        from its plan to its last settle
 *   ├─ plan                      hosts are chosen, permits granted, tasks lent
 *   ├─ send seine-http           queue: from the dispatch until its worker begins (messaging, producer)
 *   ├─ process seine-http        the work (messaging, consumer)
 *   │  ├─ GET                    one for each request (HTTP, client)
 *   │  ├─ extract                all that was computed, as one stretch at the end
 *   │  └─ archive                all waiting for storage, the same
 *   └─ settle                    a part of its report is written down
 */
export interface Span {
  name: string;
  kind: 'internal' | 'client' | 'producer' | 'consumer';
  /** Index of the span that it is part of; null for the first. */
  parent: number | null;
  /** Epoch milliseconds. */
  from: number;
  to: number;
  attributes: [name: string, value: string | number | boolean][];
  /** Null when all went well; else a word. */
  error: string | null;
}

const URL_LENGTH_MAX = 2_000;

export function spansOf(trace: BatchTrace, transport: string): Span[] {
  const { plannedAt, sentAt, endedAt, needs, tasks, lost } = trace;
  const spans: Span[] = [];
  const add = (span: Omit<Span, 'error'> & { error?: string | null }): number =>
    spans.push({ error: null, ...span }) - 1;
  const destination = `seine-${needs}`;
  const messaging = (operation: string, type: string): Span['attributes'] => [
    ['messaging.system', transport],
    ['messaging.destination.name', destination],
    ['messaging.operation.name', operation],
    ['messaging.operation.type', type],
    ['messaging.message.id', String(trace.batchId)],
    ['messaging.batch.message_count', tasks],
  ];
  const root = add({
    name: 'batch',
    kind: 'internal',
    parent: null,
    from: plannedAt,
    to: endedAt,
    attributes: [
      ['seine.job', trace.job],
      ['seine.batch', trace.batchId],
      ['seine.tasks', tasks],
      ...(trace.worker === null ? [] : ([['seine.worker', trace.worker]] satisfies Span['attributes'])),
    ],
    error: lost === null ? null : 'worker-lost',
  });
  add({ name: 'plan', kind: 'internal', parent: root, from: plannedAt, to: sentAt, attributes: [] });
  const begin = beginOf(trace);
  add({
    name: `send ${destination}`,
    kind: 'producer',
    parent: root,
    from: sentAt,
    to: begin,
    attributes: messaging('send', 'send'),
  });
  if (trace.startedAt !== null) addWork(trace, { add, root, begin, messaging, destination });
  for (const { from, to, outcomes } of trace.settles)
    add({
      name: 'settle',
      kind: 'internal',
      parent: root,
      from,
      to,
      attributes: [['seine.outcomes', outcomes]],
    });
  return spans;
}

/** When its worker began. A clock there may be another one: then its work is taken to have ended with its last report. */
function beginOf({ startedAt, workedMs, sentAt, endedAt, settles }: BatchTrace): number {
  if (startedAt === null) return endedAt;
  const reportedAt = settles.at(-1)?.from ?? endedAt;
  const fits = startedAt >= sentAt && startedAt + workedMs <= reportedAt;
  return fits ? startedAt : Math.max(sentAt, reportedAt - workedMs);
}

interface WorkParts {
  add(span: Omit<Span, 'error'> & { error?: string | null }): number;
  root: number;
  begin: number;
  messaging(operation: string, type: string): Span['attributes'];
  destination: string;
}

function addWork(trace: BatchTrace, { add, root, begin, messaging, destination }: WorkParts): void {
  const end = Math.max(begin, Math.min(begin + trace.workedMs, trace.endedAt));
  const shift = begin - trace.startedAt!;
  const process = add({
    name: `process ${destination}`,
    kind: 'consumer',
    parent: root,
    from: begin,
    to: end,
    attributes: messaging('process', 'process'),
    error: trace.lost === null ? null : 'worker-lost',
  });
  const within = (at: number) => Math.min(Math.max(at, begin), end);
  for (const page of trace.pages.slice(0, TRACED_PAGES_MAX)) {
    const from = within(page.startedAt + shift);
    const to = Math.max(from, within(page.startedAt + shift + page.durationMs));
    add({
      name: 'GET',
      kind: 'client',
      parent: process,
      from,
      to,
      attributes: httpOf(page),
      error: page.error,
    });
  }
  const archiveFrom = Math.max(begin, end - (trace.times.archive ?? 0));
  const extractFrom = Math.max(begin, archiveFrom - (trace.times.cpu ?? 0));
  const sum = {
    kind: 'internal',
    parent: process,
    attributes: [['seine.sum', true]],
  } satisfies Partial<Span>;
  add({ name: 'extract', from: extractFrom, to: archiveFrom, ...sum });
  add({ name: 'archive', from: archiveFrom, to: end, ...sum });
}

function httpOf({ url, attempt, httpStatus, bytes, fetcher, error }: TracedPage): Span['attributes'] {
  const { hostname, port, protocol } = new URL(url);
  return [
    ['http.request.method', 'GET'],
    ['url.full', url.slice(0, URL_LENGTH_MAX)],
    ['server.address', hostname],
    ['server.port', port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)],
    ...(httpStatus === null
      ? []
      : ([['http.response.status_code', httpStatus]] satisfies Span['attributes'])),
    ['http.response.body.size', bytes],
    ...(attempt > 1 ? ([['http.request.resend_count', attempt - 1]] satisfies Span['attributes']) : []),
    ...(error === null ? [] : ([['error.type', error]] satisfies Span['attributes'])),
    ['seine.fetcher', fetcher],
  ];
}
