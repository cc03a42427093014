import { statfs } from 'node:fs/promises';
import { postMessage, runWithMessage } from '../../app/notify.ts';
import { sendMail } from '../../app/send-mail.ts';
import { latestQualityOf } from '../../coordinator/reports/quality.ts';
import {
  ALERT_KINDS,
  type AlertChange,
  AlertJudge,
  type JobFacts,
  type Thresholds,
} from '../../core/alerts/alerts.ts';
import type { MailTarget } from '../../core/alerts/mail-target.ts';
import { totalOf } from '../../core/cost/cost.ts';
import { messageOf } from '../../core/errors.ts';
import { ALL_HOSTS, countsOf } from '../../core/rollups/rollup.ts';
import { hideCredentials } from '../../core/text/redact.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { AlertSilence } from '../../ports/store/alert-store.ts';
import type { Job, Store } from '../../ports/store.ts';

/** Where alerts go besides the webhooks of endpoints that want them. */
export interface AlertTargets {
  /** Takes `{"text": …}`, as Slack and many others do. */
  slackUrl: string | null;
  /** Run with the alert as JSON on its standard input. */
  command: readonly string[] | null;
  mail: MailTarget | null;
}

interface WatchOptions {
  store: Store;
  dir: string;
  thresholds: Thresholds;
  targets: AlertTargets;
  slots(): { slots: number };
  logger: Logger;
  now(): number;
}

const LOOK_MS = 15_000;
const HOUR_MS = 3_600_000;
/** Jobs that are looked at; each takes a few reads of rows that are in memory. */
const JOBS_MAX = 200;
const KEPT_MS = 90 * 24 * HOUR_MS;

/** Looks at the jobs that run, decides by `core/alerts`, and tells people. */
export class AlertWatch {
  readonly #options: WatchOptions;
  #judge: AlertJudge | null = null;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#looking = this.#looking
        .then(() => this.look())
        .catch((error: unknown) => {
          // The run of the server ends when its store fails; here the next look may succeed.
          this.#options.logger.warn(`cannot look for alerts: ${messageOf(error)}`);
        });
    }, LOOK_MS);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    await this.#looking;
  }

  async look(): Promise<void> {
    const { store, thresholds, slots, now: clock } = this.#options;
    const now = clock();
    if (!this.#judge) {
      await store.alerts.forget(now - KEPT_MS);
      this.#judge = new AlertJudge(thresholds, await store.alerts.firing());
    }
    const running = (await store.jobs.running()).slice(-JOBS_MAX);
    const jobs: JobFacts[] = [];
    for (const job of running) jobs.push(await this.#factsOf(job, now));
    const changes = this.#judge.look({
      now,
      jobs,
      slots: running.length === 0 ? null : slots().slots,
      diskFreeBytes: await this.#diskFree(),
    });
    if (changes.length === 0) return;
    const silences = await store.alerts.silences(now);
    for (const change of changes) await this.#note(change, silences, now);
  }

  async #factsOf(job: Job, now: number): Promise<JobFacts> {
    const { store } = this.#options;
    const range = { step: 60 as const, from: now - HOUR_MS, to: now + 1, host: ALL_HOSTS };
    const [rows, counters, quality] = await Promise.all([
      store.rollups.series(job.id, range),
      store.jobs.counters(job.id),
      latestQualityOf(store, job),
    ]);
    const max = job.spec.limits.dollars ?? null;
    const spent = max === null ? 0 : totalOf(await store.jobs.costs(job.id));
    const finished = counters.done + counters.unchanged + counters.skipped + counters.dead;
    return {
      job: job.name,
      pending: counters.pending,
      minutes: rows.map(({ at, rollup }) => ({
        at,
        succeeded: rollup.succeeded,
        failed: rollup.failed,
        failures: countsOf(rollup, 'failure').reduce((sum, [, count]) => sum + count, 0),
      })),
      drops: quality.routes.flatMap(({ route, drops }) =>
        drops.map(
          ({ field, before, now: share }) =>
            `${field ?? 'valid pages'} of ${route}: ${percent(before)} before, ${percent(share)} now`,
        ),
      ),
      budget:
        max === null
          ? null
          : { spent, max, expected: finished === 0 ? spent : (spent / finished) * counters.accepted },
    };
  }

  async #diskFree(): Promise<number | null> {
    const found = await statfs(this.#options.dir).catch(() => null);
    return found && found.bavail * found.bsize;
  }

  /** In the store first: of several servers over one database one tells. */
  async #note(change: AlertChange, silences: readonly AlertSilence[], now: number): Promise<void> {
    const { store, logger } = this.#options;
    const { kind, subject, state, text } = change;
    const isFirst =
      state === 'firing'
        ? (await store.alerts.fire({ kind, subject, text, now })) !== null
        : await store.alerts.resolve(kind, subject, now);
    if (!isFirst || silences.some((silence) => isSilenced(change, silence))) return;
    logger.warn(lineOf(change), { alert: kind, ...(subject === '' ? {} : { job: subject }) });
    const data = { kind, job: subject === '' ? null : subject, state, text, meaning: ALERT_KINDS[kind] };
    for (const owner of await this.#mayKnow(subject))
      await store.webhooks.tell({ type: `alert.${state}`, data }, { owner, now });
    await this.#send('Slack', this.#options.targets.slackUrl, (url) =>
      // The operator says where.
      postMessage(url, { text: lineOf(change) }, null),
    );
    await this.#send('the mail server', this.#options.targets.mail, (mail) =>
      sendMail(mail, mailOf(change, now)),
    );
    await this.#send('the command', this.#options.targets.command, (command) =>
      runWithMessage(command, data),
    );
  }

  /** The operator, keys with admin scope, and the key whose job it is: the others may not know of it. */
  async #mayKnow(subject: string): Promise<Set<string | null>> {
    const { store } = this.#options;
    const keys = (await store.keys.list()).filter(({ revokedAt }) => revokedAt === null);
    const admins = keys.filter(({ scope }) => scope === 'admin').map(({ id }) => id);
    const job = subject === '' ? null : await store.jobs.find(subject);
    const isOwn = keys.some(({ id }) => id === job?.owner);
    return new Set([null, ...admins, ...(isOwn ? [job!.owner] : [])]);
  }

  async #send<T>(name: string, target: T | null, send: (target: T) => Promise<void>): Promise<void> {
    if (target === null) return;
    try {
      await send(target);
    } catch (error) {
      this.#options.logger.warn(`could not send an alert to ${name}: ${hideCredentials(messageOf(error))}`);
    }
  }
}

export function isSilenced(
  { kind, subject }: Pick<AlertChange, 'kind' | 'subject'>,
  silence: AlertSilence,
): boolean {
  return (
    (silence.kind === null || silence.kind === kind) &&
    (silence.subject === null || silence.subject === subject)
  );
}

function lineOf({ kind, subject, state, text }: AlertChange): string {
  return `alert ${kind} ${state}${subject === '' ? '' : ` for ${subject}`}: ${text}`;
}

function mailOf(change: AlertChange, now: number): { subject: string; text: string } {
  const { kind, subject, state, text } = change;
  const about = subject === '' ? '' : ` for ${subject}`;
  const lines = [
    `${text}.`,
    '',
    `Alert:   ${kind} (${ALERT_KINDS[kind]})`,
    ...(subject === '' ? [] : [`Job:     ${subject}`]),
    `State:   ${state}`,
    `Time:    ${new Date(now).toISOString()}`,
  ];
  return { subject: `[seine] ${kind} ${state}${about}`, text: `${lines.join('\n')}\n` };
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
