import { hash } from 'node:crypto';
import type { BatchTask } from '../../core/batch/batch.ts';
import type { Outcome, StoredPage, Trace } from '../../core/batch/outcome.ts';
import { messageOf } from '../../core/errors.ts';
import { sniffMediaType } from '../../core/media/media-type.ts';
import type { MediaRef } from '../../core/model.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { BodySink, FetchResponse } from '../../ports/fetcher.ts';
import type { CompiledRoute } from '../job/compiled-job.ts';
import { headerOf, Page } from '../page/page.ts';
import { permissionsOf, robotsTagsOf } from '../page/robots-tags.ts';
import { failed, type VisitContext, visit } from '../request/visit.ts';
import type { PageArchiver } from '../storage/archive.ts';
import { BodyPool } from './body-pool.ts';
import { MEDIA_BUFFER_BYTES, MediaIntake, type Received, UnwantedType } from './media-intake.ts';
import type { MediaWriter } from './media-writer.ts';

export interface MediaContext extends VisitContext {
  /** For the archive: redirects on the way to an object. */
  keep: PageArchiver;
  blobs: Blobs;
  media: Pick<MediaWriter, 'put'>;
  /** Something could not be stored: no fault of the site or the task. */
  onTrouble(what: string, error: unknown): void;
}

/** Of all batches of a thread. */
const bodies = new BodyPool();

/** Fetches one object and stores it by the hash of its bytes. */
export async function processMedia(
  task: BatchTask,
  route: CompiledRoute,
  context: MediaContext,
): Promise<Outcome> {
  return new MediaTask(task, route, context).outcome();
}

/** The object says in a header that it may not be kept, and the job obeys. */
class KeptOut extends Error {}

class MediaTask {
  readonly #task: BatchTask;
  readonly #route: CompiledRoute;
  readonly #context: MediaContext;
  #intake: MediaIntake | null = null;
  #robotsTags: string | null = null;
  #refusal: unknown = null;

  constructor(task: BatchTask, route: CompiledRoute, context: MediaContext) {
    this.#task = task;
    this.#route = route;
    this.#context = context;
  }

  async outcome(): Promise<Outcome> {
    const answer = await visit(this.#task, this.#context, {
      bodyBytesMax: this.#context.job.spec.media.bytes,
      sinkFor: (head) => this.#sinkFor(head.rawHeaders),
      bodyMemory: bodies,
    });
    if (answer.kind === 'over') {
      await this.#intake?.abort();
      return this.#over(answer.outcome);
    }
    const { response, trace } = answer;
    if (answer.kind === 'redirect') {
      return {
        kind: 'redirected',
        taskId: this.#task.id,
        to: answer.to,
        page: this.#redirectPage(response, trace),
        trace,
      };
    }
    try {
      return await this.#store(response, trace);
    } catch (error) {
      await this.#intake?.abort();
      return this.#refused(error, trace);
    }
  }

  /** Null leaves the body to the fetcher's memory: the quickest way for what is known to be small. */
  #sinkFor(rawHeaders: string[]): BodySink | null {
    try {
      this.#checkTags(rawHeaders);
      const coding = headerOf(rawHeaders, 'content-encoding');
      const length = headerOf(rawHeaders, 'content-length');
      const expectedBytes = coding === null && length !== null ? Number(length) : null;
      this.#intake = new MediaIntake({
        blobs: this.#context.blobs,
        declaredType: headerOf(rawHeaders, 'content-type'),
        expectedBytes,
        takes: this.#context.job.takesMedia,
      });
      return expectedBytes !== null && expectedBytes <= MEDIA_BUFFER_BYTES ? null : this.#intake;
    } catch (error) {
      this.#refusal = error;
      throw error;
    }
  }

  #checkTags(rawHeaders: string[]): void {
    if (headerOf(rawHeaders, 'x-robots-tag') === null) return;
    const { job } = this.#context;
    const page = new Page({
      url: this.#task.url,
      status: 200,
      contentType: null,
      contentTypeHeader: null,
      headers: rawHeaders,
      body: Buffer.alloc(0),
      route: this.#route.name,
      meta: null,
    });
    this.#robotsTags = robotsTagsOf(page, job.headers['user-agent']!);
    const may = permissionsOf(this.#robotsTags, job.spec.politeness.robotsTags);
    if (!may.media || !may.archive) throw new KeptOut(`X-Robots-Tag: ${this.#robotsTags}`);
  }

  /** When the sink gave up, the fetcher only knows that it did: the reason is here. */
  #over(outcome: Outcome): Outcome {
    const reason = this.#refusal ?? this.#intake?.failure ?? null;
    if (reason === null || outcome.kind !== 'failed' || outcome.code !== 'internal') return outcome;
    return this.#refused(reason, outcome.trace);
  }

  #refused(reason: unknown, trace: Trace | null): Outcome {
    const { id } = this.#task;
    const detail = messageOf(reason);
    if (reason instanceof KeptOut) return { kind: 'skipped', taskId: id, code: 'robots', detail, trace };
    if (reason instanceof UnwantedType) return failed(id, 'media-type', detail, trace);
    this.#context.onTrouble('cannot store a media file', reason);
    return { kind: 'deferred', taskId: id };
  }

  async #store(response: FetchResponse, trace: Trace): Promise<Outcome> {
    const { id, lastVisit } = this.#task;
    const intake = this.#intake!;
    const received = await (response.body.length > 0 ? intake.inMemory(response.body) : intake.received());
    const isSame = lastVisit !== null && lastVisit.sha256 === received.sha256;
    if (isSame && this.#context.job.spec.media.pack === 'webdataset') {
      // Its shard is known to the store alone, and stays the one that holds it.
      await intake.abort();
      bodies.giveBack(response.body);
      return { kind: 'unchanged', taskId: id, page: null, trace };
    }
    const media = this.#keep(received, trace);
    // Not awaited when it is there at once: nothing may come between a shard's member and its outcome.
    const page = this.#pageOf(response, received, media instanceof Promise ? await media : media);
    if (isSame) return { kind: 'unchanged', taskId: id, page, trace };
    return { kind: 'fetched', taskId: id, page, links: [], records: [], shows: [], trace };
  }

  #keep(received: Received, trace: Trace): MediaRef | Promise<MediaRef> {
    const { body, sha256, md5, extension, bytes, contentType } = received;
    if (body === null) return this.#intake!.commit(received).then((key) => ({ key, md5, member: null }));
    const { url, meta } = this.#task;
    const about = { url, sha256, md5, bytes, contentType, fetchedAt: new Date(trace.startedAt), meta };
    const onStored = () => bodies.giveBack(body);
    return this.#context.media.put({
      bytes: body,
      sha256,
      md5,
      extension,
      at: trace.startedAt,
      about,
      onStored,
    });
  }

  #pageOf(response: FetchResponse, received: Received, media: MediaRef): StoredPage {
    return {
      route: this.#route.name,
      httpStatus: response.status,
      contentType: received.contentType,
      bytes: received.bytes,
      sha256: received.sha256,
      archive: null,
      media,
      robotsTags: this.#robotsTags,
      etag: headerOf(response.rawHeaders, 'etag'),
      lastModified: headerOf(response.rawHeaders, 'last-modified'),
    };
  }

  /** What leads to an object is a page like any other. */
  #redirectPage(response: FetchResponse, trace: Trace): StoredPage {
    const { rawHeaders, body, status } = response;
    const sha256 = hash('sha256', body, 'hex');
    return {
      route: this.#route.name,
      httpStatus: status,
      contentType: sniffMediaType(body, headerOf(rawHeaders, 'content-type')),
      bytes: body.length,
      sha256,
      archive: this.#context.keep.page(this.#task.url, response, trace.startedAt, sha256),
      media: null,
      robotsTags: null,
      etag: headerOf(rawHeaders, 'etag'),
      lastModified: headerOf(rawHeaders, 'last-modified'),
    };
  }
}
