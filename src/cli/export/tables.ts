import { qualityOf } from '../../coordinator/reports/quality.ts';
import type { RouteQuality } from '../../coordinator/reports/run-view.ts';
import { type HostLogRow, rowOf } from '../../core/host-log/host-log.ts';
import type {
  AttemptRow,
  MediaRow,
  RecordRow,
  RecordVersionRow,
  ShotRow,
  TaskRow,
} from '../../core/model.ts';
import type { Job, Since, Store } from '../../ports/store.ts';
import { type ColumnType, type Table, tableOf } from '../../tables/table.ts';
import { recordTable, tableWithMeta } from './record-table.ts';

export const WHATS = [
  'records',
  'tasks',
  'attempts',
  'media',
  'shots',
  'history',
  'quality',
  'hosts',
] as const;
export type What = (typeof WHATS)[number];

/** Which rows are asked for. `wholeName`: of all runs of the job's name, where rows outlive a run. */
export interface Selection extends Since {
  store: Store;
  job: Job;
  wholeName: boolean;
}

interface QualityExportRow extends RouteQuality {
  job: string;
  run: number;
  pass: number;
}

/** Rows as objects, for formats that nest. */
export function rowsOf(what: What, { store, job, wholeName, ...since }: Selection): AsyncIterable<object> {
  switch (what) {
    case 'records':
      return store.views.records(job.id, { ...since, ownOnly: !wholeName });
    case 'quality':
      return qualityRows(store, job, wholeName);
    case 'hosts':
      return hostRows(store, job);
    default:
      return store.views[what](job.id, since);
  }
}

/** The same as a table, for formats that have columns. */
export async function openTable(what: What, selection: Selection): Promise<Table> {
  if (what === 'tasks' || what === 'media') return tableWithMeta(TYPES[what], () => rowsOf(what, selection));
  if (what !== 'records' && what !== 'history') return tableOf(TYPES[what], rowsOf(what, selection));
  const read = () => rowsOf(what, selection) as AsyncIterable<RecordRow | RecordVersionRow>;
  return recordTable(read, RECORD_TYPES[what], selection.job.spec);
}

async function* qualityRows(store: Store, job: Job, wholeName: boolean): AsyncIterable<QualityExportRow> {
  for (let run = wholeName ? 1 : job.run; run <= job.run; run++) {
    const one = run === job.run ? job : await store.jobs.find(`${job.name}-${run}`);
    if (one?.name !== job.name) continue;
    for (let pass = 1; pass <= one.pass; pass++)
      for (const quality of await qualityOf(store, one, pass)) yield { job: one.name, run, pass, ...quality };
  }
}

/** The logs of all hosts of a job, whole: a chain that begins in the middle could not be checked. */
async function* hostRows(store: Store, job: Job): AsyncIterable<HostLogRow> {
  for await (const { host } of store.hosts.list(job.id)) yield* hostLog(store, host);
}

const LOG_STEP = 500;

export async function* hostLog({ hosts }: Pick<Store, 'hosts'>, host: string): AsyncIterable<HostLogRow> {
  for (let after = 0; ; ) {
    const entries = await hosts.logStep(host, { after, limit: LOG_STEP });
    for (const entry of entries) yield rowOf(entry);
    if (entries.length < LOG_STEP) return;
    after = entries.at(-1)!.number;
  }
}

const TASK_TYPES: Record<keyof TaskRow, ColumnType> = {
  url: 'text',
  state: 'text',
  httpStatus: 'integer',
  failureCode: 'text',
  failureDetail: 'text',
  attempts: 'integer',
  bytes: 'integer',
  sha256: 'text',
  contentType: 'text',
  archive: 'json',
  media: 'json',
  shots: 'json',
  robotsTags: 'text',
  redirectTo: 'text',
  depth: 'integer',
  priority: 'integer',
  route: 'text',
  host: 'text',
  fetchedAt: 'time',
  revisitSeconds: 'integer',
  meta: 'json',
};

const ATTEMPT_TYPES: Record<keyof AttemptRow, ColumnType> = {
  url: 'text',
  batch: 'integer',
  worker: 'text',
  startedAt: 'time',
  durationMs: 'integer',
  httpStatus: 'integer',
  outcome: 'text',
  failureCode: 'text',
  detail: 'text',
  bytes: 'integer',
  fetcher: 'text',
  rung: 'integer',
  identity: 'text',
  proxy: 'text',
};

const MEDIA_TYPES: Record<keyof MediaRow, ColumnType> = {
  url: 'text',
  key: 'text',
  member: 'text',
  bytes: 'integer',
  md5: 'text',
  sha256: 'text',
  contentType: 'text',
  fetchedAt: 'time',
  referrers: 'json',
  meta: 'json',
};

const SHOT_TYPES: Record<keyof ShotRow, ColumnType> = {
  url: 'text',
  kind: 'text',
  key: 'text',
  type: 'text',
  bytes: 'integer',
  outcome: 'text',
  httpStatus: 'integer',
  failureCode: 'text',
  route: 'text',
  takenAt: 'time',
  latest: 'boolean',
};

const QUALITY_TYPES: Record<keyof QualityExportRow, ColumnType> = {
  job: 'text',
  run: 'integer',
  pass: 'integer',
  route: 'text',
  score: 'integer',
  records: 'integer',
  invalid: 'integer',
  fields: 'json',
  drops: 'json',
};

const HOST_TYPES: Record<keyof HostLogRow, ColumnType> = {
  host: 'text',
  number: 'integer',
  kind: 'text',
  at: 'time',
  job: 'text',
  batch: 'integer',
  permit: 'json',
  requests: 'integer',
  firstSentAt: 'time',
  lastSentAt: 'time',
  smallestGapUs: 'integer',
  answers: 'json',
  refusals: 'integer',
  robots: 'json',
  before: 'json',
  previous: 'text',
  hash: 'text',
};

const TYPES = {
  tasks: TASK_TYPES,
  attempts: ATTEMPT_TYPES,
  media: MEDIA_TYPES,
  shots: SHOT_TYPES,
  quality: QUALITY_TYPES,
  hosts: HOST_TYPES,
};

/** Besides the fields of the record, which lie between these. */
const RECORD_TYPES = {
  records: {
    first: { url: 'text' },
    last: {
      key: 'text',
      route: 'text',
      hash: 'text',
      createdAt: 'time',
      updatedAt: 'time',
      checkedAt: 'time',
      goneAt: 'time',
      meta: 'json',
    },
  },
  history: {
    first: { key: 'text', from: 'time', until: 'time' },
    last: { url: 'text', hash: 'text', goneAt: 'time' },
  },
} satisfies Record<string, { first: Record<string, ColumnType>; last: Record<string, ColumnType> }>;
