import type { AppSettings } from '../app/app.ts';
import { messageOf } from '../core/errors.ts';
import { BoundedMap } from '../core/lru.ts';

/** A cold start takes a few seconds; what is warm stays so for some minutes. */
const AHEAD_MS = 30_000;
/** A call of some seconds each, at a fraction of a cent for all; more are started by the run itself. */
const COUNT_MAX = 100;
const RUNS_REMEMBERED = 1_000;

type WarmerSettings = Pick<AppSettings, 'dispatch' | 'lambda' | 'logger'>;

/** Starts environments of AWS Lambda shortly before a scheduled run: its first batches meet no cold start. */
export class LambdaWarmer {
  readonly #settings: WarmerSettings;
  /** Names of jobs, with the time of the run that was prepared. */
  readonly #prepared = new BoundedMap<string, number>(RUNS_REMEMBERED);
  #work: Promise<void> = Promise.resolve();

  constructor(settings: WarmerSettings) {
    this.#settings = settings;
  }

  /** Called now and then while the job waits for its time. */
  look(name: string, dueAt: number, now: number): void {
    if (dueAt - now > AHEAD_MS || this.#prepared.get(name) === dueAt) return;
    this.#prepared.set(name, dueAt);
    const functions = (this.#settings.dispatch ?? []).flatMap((target) =>
      target.kind === 'lambda' ? target.name : [],
    );
    for (const each of new Set(functions)) this.#work = this.#work.then(() => this.#warm(each));
  }

  /** What was begun is over. */
  close(): Promise<void> {
    return this.#work;
  }

  /** A run that cannot be prepared is begun all the same. */
  async #warm(name: string): Promise<void> {
    const { lambda: place, logger } = this.#settings;
    if (!place) return;
    const count = Math.min(place.concurrency, COUNT_MAX);
    try {
      const { loadLambda } = await import('../aws/lambda/lambda-client.ts');
      const { warmFunction } = await import('../transport/lambda/warm-function.ts');
      const loaded = await loadLambda(place, { sockets: count });
      const { warm } = await warmFunction(loaded, name, place, count).finally(() => loaded.client.destroy());
      logger.info(`${warm} environments of ${name} are warm for the next scheduled run`);
    } catch (error) {
      logger.warn(`cannot warm up ${name} before a scheduled run: ${messageOf(error)}`);
    }
  }
}
