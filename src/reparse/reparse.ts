import { HostGroups } from '../coordinator/hosts/host-groups.ts';
import { toNewTask } from '../coordinator/settle/settle-tasks.ts';
import type { Discovered, RecordDraft } from '../core/batch/outcome.ts';
import type { RecordRow } from '../core/model.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { Resolver } from '../ports/resolver.ts';
import type { ArchivedPage, Job, Rewrite, Store } from '../ports/store.ts';
import { QualitySum } from '../worker/batch/report-parts.ts';
import type { CompiledJob } from '../worker/job/compiled-job.ts';
import { type ReparsedPage, readAgain, wasRefused } from './read-again.ts';
import { type FieldChange, type FieldFill, mergedData, RecordDiff } from './record-diff.ts';

export interface ReparseInput {
  store: Store;
  blobs: Blobs;
  job: Job;
  /** Whether it is the newest run of its name; others may have written its records since. */
  isNewest: boolean;
  /** Today's code. */
  code: CompiledJob;
  dryRun: boolean;
  /** At most so many pages. */
  limit: number | null;
  now: number;
  /** For jobs whose rates are counted by address. */
  resolver?: Resolver | null;
  onPage?(pages: number): void;
}

export interface ReparseResult {
  pages: number;
  /** Pages that do not parse with today's code, and those that the archive does not have. */
  failed: number;
  unreadable: number;
  /** Dead letters whose page parses now, and tasks from links of theirs. */
  lifted: number;
  links: number;
  /** Tasks of media that pages show by today's rules. */
  media: number;
  records: RecordDiff['records'];
  fields: FieldChange[];
  fills: FieldFill[];
  /** The first that went wrong. */
  troubles: { url: string; code: 'parse-error' | 'validation' | 'unreadable'; detail: string }[];
}

/** Pages read ahead, so that the disk and waiting handlers overlap. */
const PAGES_AHEAD = 8;
/** One piece of writing: so many tasks or characters of records, whichever comes first. */
const PIECE_TASKS_MAX = 200;
const PIECE_CHARACTERS_MAX = 4 * 1024 * 1024;
const TROUBLES_SHOWN = 5;

/** Reads every archived page with today's code, without a request, and writes what differs. */
export async function reparse(input: ReparseInput): Promise<ReparseResult> {
  const { result, merges } = await readAll(input);
  const { records } = result;
  if (input.dryRun || !merges || records.gone === 0) return result;
  // A record went with the page that wrote it last; what other pages say under its key is put back.
  const restored = (await readAll({ ...input, onPage() {} })).result.records.new;
  return {
    ...result,
    records: { ...records, gone: records.gone - restored, changed: records.changed + restored },
  };
}

async function readAll(input: ReparseInput): Promise<{ result: ReparseResult; merges: boolean }> {
  const reparsing = new Reparsing(input);
  for await (const reparsed of reparsedPages(input)) await reparsing.take(reparsed);
  return { result: await reparsing.finish(), merges: reparsing.merges };
}

/** In the order of the pages. */
async function* reparsedPages({ store, blobs, job, code, limit }: ReparseInput): AsyncIterable<ReparsedPage> {
  const open: Promise<ReparsedPage>[] = [];
  let left = limit ?? Number.POSITIVE_INFINITY;
  for await (const page of store.views.pages(job.id)) {
    if (left-- <= 0) break;
    open.push(readAgain(page, code, blobs));
    if (open.length >= PAGES_AHEAD) yield await open.shift()!;
  }
  for (const reparsed of open) yield await reparsed;
}

class Reparsing {
  /** Whether several pages may make one record. */
  merges = false;
  readonly #input: ReparseInput;
  readonly #groups: HostGroups;
  readonly #diff = new RecordDiff();
  readonly #quality = new QualitySum();
  readonly #troubles: ReparseResult['troubles'] = [];
  readonly #counts = { pages: 0, failed: 0, unreadable: 0, lifted: 0, links: 0, media: 0 };
  #piece: Rewrite['tasks'] = [];
  #shown: NonNullable<Rewrite['shown']> = [];
  #characters = 0;

  constructor(input: ReparseInput) {
    this.#input = input;
    this.#groups = new HostGroups(input);
  }

  async take(reparsed: ReparsedPage): Promise<void> {
    if (reparsed.kind === 'other') return;
    const { page } = reparsed;
    this.#counts.pages++;
    this.#input.onPage?.(this.#counts.pages);
    if (reparsed.kind === 'unreadable') {
      this.#counts.unreadable++;
      this.#note(page, 'unreadable', reparsed.detail);
      return;
    }
    if (reparsed.quality) this.#quality.add(reparsed.quality);
    if (reparsed.kind === 'read') await this.#takeRecords(page, reparsed);
    else await this.#takeFailure(page, reparsed);
  }

  async finish(): Promise<ReparseResult> {
    await this.#write();
    // Of some pages only, it would not be the quality of the pass.
    if (this.#input.limit === null) await this.#rewrite([], true);
    const { store, job } = this.#input;
    const { links, media } = this.#counts;
    if (links + media > 0 && job.state === 'done')
      await store.jobs.update(job.id, {
        state: 'stopped',
        reason: 'reparsed pages contained new URLs',
      });
    return {
      ...this.#counts,
      records: this.#diff.records,
      fields: this.#diff.fields,
      fills: this.#diff.fills,
      troubles: this.#troubles,
    };
  }

  async #takeRecords(
    page: ArchivedPage,
    { drafts, links, shows }: ReparsedPage & { kind: 'read' },
  ): Promise<void> {
    const isLifted = wasRefused(page);
    if (isLifted) this.#counts.lifted++;
    // Before the page counts as done: after a crash in between, it is read and asked for its links again.
    this.#counts.links += await this.#enqueue(page, links);
    if (shows) await this.#show(page, shows);
    const differs = await this.#compare(page, drafts);
    if (differs || isLifted) await this.#put(page, { records: drafts, to: 'done', code: null, detail: null });
  }

  /** What the task wrote before against what it writes now. */
  async #compare(page: ArchivedPage, drafts: RecordDraft[]): Promise<boolean> {
    const { store, job, isNewest } = this.#input;
    const own = new Map<string, RecordRow>();
    for (const record of await store.views.recordsOf(page.taskId)) own.set(record.key, record);
    let differs = false;
    for (const { key, json, merge } of drafts) {
      const known = own.get(key) ?? (await store.views.record(job.id, key));
      // A later run has written it since, from a later page.
      if (known && !isNewest && !own.has(key)) continue;
      own.delete(key);
      if (merge) this.merges = true;
      const found = JSON.parse(json) as RecordRow['data'];
      const after = merge && known ? mergedData(known.data, found) : found;
      if (this.#diff.add(page.url, known?.data ?? null, after)) differs = true;
    }
    for (const { data } of own.values()) differs = this.#diff.add(page.url, data, null);
    return differs;
  }

  async #takeFailure(page: ArchivedPage, { code, detail }: ReparsedPage & { kind: 'failed' }): Promise<void> {
    this.#counts.failed++;
    this.#note(page, code, detail);
    // What better code once read stays: a mistake of today must not delete it.
    const kept = await this.#input.store.views.recordsOf(page.taskId);
    const records = kept.map(({ key, data, hash }) => ({
      key,
      json: JSON.stringify(data),
      hash,
      merge: false,
    }));
    await this.#put(page, { records, to: 'dead', code, detail });
  }

  async #put(page: ArchivedPage, change: Omit<Rewrite['tasks'][number], 'taskId' | 'at'>): Promise<void> {
    this.#piece.push({ taskId: page.taskId, at: page.fetchedAt, ...change });
    for (const { json } of change.records) this.#characters += json.length;
    if (this.#piece.length >= PIECE_TASKS_MAX || this.#characters >= PIECE_CHARACTERS_MAX)
      await this.#write();
  }

  /** How many of them are new. */
  async #enqueue(page: ArchivedPage, links: readonly Discovered[]): Promise<number> {
    const { store, job, code, now, dryRun } = this.#input;
    if (dryRun || links.length === 0) return 0;
    const groupOf = await this.#groups.of(() => links.map(({ host }) => host));
    const tasks = links.map((link) => toNewTask(page, link, { groupOf }));
    const perTemplateMax = code.spec.limits.perTemplate;
    const { accepted } = await store.frontier.enqueue(job.id, tasks, { now, perTemplateMax, source: null });
    return accepted;
  }

  async #show(page: ArchivedPage, shows: Discovered[]): Promise<void> {
    this.#counts.media += await this.#enqueue(page, shows);
    this.#shown.push({ taskId: page.taskId, urls: shows.map(({ url }) => url) });
    if (this.#shown.length >= PIECE_TASKS_MAX) await this.#write();
  }

  async #write(): Promise<void> {
    const tasks = this.#piece;
    this.#piece = [];
    this.#characters = 0;
    if (tasks.length + this.#shown.length > 0) await this.#rewrite(tasks, false);
  }

  async #rewrite(tasks: Rewrite['tasks'], last: boolean): Promise<void> {
    const { store, job, now, code, dryRun } = this.#input;
    if (dryRun) {
      this.#shown = [];
      return;
    }
    const quality = last ? this.#quality.take() : [];
    const { history } = code.spec.records;
    const shown = this.#shown;
    this.#shown = [];
    await store.views.rewrite(job.id, { now, history, tasks, shown, quality, first: last });
  }

  #note(page: ArchivedPage, code: ReparseResult['troubles'][number]['code'], detail: string): void {
    if (this.#troubles.length < TROUBLES_SHOWN) this.#troubles.push({ url: page.url, code, detail });
  }
}
