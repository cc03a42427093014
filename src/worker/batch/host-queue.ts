import { isAnswer, isBanLike, TOLERATED } from '../../core/bans/bans.ts';
import type { BatchTask, PermitUse, RobotsFetch } from '../../core/batch/batch.ts';
import type { Outcome, RobotsOutcome } from '../../core/batch/outcome.ts';
import type { BatchBytes } from '../../core/byte-limit/byte-limit.ts';
import { messageOf } from '../../core/errors.ts';
import { isHostThrottling } from '../../core/failures.ts';
import { parallelOf } from '../../core/job-schema/job.ts';
import { guardedGapMs } from '../../core/politeness/permits.ts';
import { delayOf, parseRobots, productToken, type RobotsRules } from '../../core/robots/robots.ts';
import { originOf } from '../../core/url/url-shape.ts';
import { startTimer } from '../../ports/ambient.ts';
import { fetchKnownPage } from '../request/fetch-known-page.ts';
import { fetchRobots } from '../request/fetch-robots.ts';
import { failed } from '../request/visit.ts';
import { Lateness, Pace } from './pace.ts';
import { processTask, type TaskContext } from './process-task.ts';
import type { RequestGate } from './request-gate.ts';
import { SlowRequests } from './slow-requests.ts';
import { SlowStart } from './slow-start.ts';
import type { Activity } from './work-timer.ts';

interface HostQueueInput {
  permit: ConstructorParameters<typeof Pace>[0];
  tasks: BatchTask[];
  robots: RobotsFetch[];
  /** Those asked under other permits, for tasks of this one. */
  awaited?: RobotsFetch[];
  /** Shared by all queues of the batch; null without a limit. */
  bytes?: BatchBytes | null;
}

interface HostQueueEvents {
  onOutcome(outcome: Outcome): void;
  onRobots(outcome: RobotsOutcome): void;
  /** No task is left to begin, and so many are late; told again when they are half. */
  onLate(count: number): void;
}

/** Of the worker, over all its batches. */
interface WorkerLoad {
  lateness?: Lateness | undefined;
  /** Absent: as many requests at once as permits allow. */
  gate?: RequestGate | null | undefined;
}

/** Fewer answers with status 503 say nothing about the host. */
const UNAVAILABLE_MIN = 4;

/** Where no page has answered yet, it is looked again after so long whether one has. */
const FIRST_LATE_MS = 300;

/** Of this worker, over all its batches. */
const LATENESS = new Lateness();

/** All work of a batch for one host, under its permit. */
export class HostQueue {
  readonly #input: HostQueueInput;
  readonly #context: Omit<TaskContext, 'onSent'>;
  readonly #events: HostQueueEvents;
  readonly #pace: Pace;
  readonly #gate: RequestGate | null;
  readonly #slow: SlowRequests;
  readonly #slowStart: SlowStart | null;
  /** Rules read in this batch, by origin; null when robots.txt could not be fetched. */
  readonly #rules = new Map<string, RobotsRules | null>();
  /** Ends the wait of those that have not begun: when the batch is over, or the host was given back. */
  readonly #stop = new AbortController();
  #next = 0;
  /** Tasks that the host has not answered yet, or what is asked before all tasks. */
  #underWay = 0;
  /** There when the host was given back, or what is late was told. */
  #told: { count: number; onUnderWay(count: number): void } | null = null;
  #stopWaiting: (() => void) | null = null;
  #finished = false;
  #reportedSent = 0;
  #answers = 0;
  #unavailable = 0;
  /** Refused pages since the last answer, and how many of them end the permit: at first only where pages answered before. */
  #refusals = 0;
  #refusalsMax: number;
  #probe: Awaited<ReturnType<typeof fetchKnownPage>> = null;

  constructor(
    input: HostQueueInput,
    context: Omit<TaskContext, 'onSent' | 'parallel'>,
    events: HostQueueEvents,
    { lateness = LATENESS, gate = null }: WorkerLoad = {},
  ) {
    this.#input = input;
    this.#gate = gate;
    this.#context = { ...context, parallel: parallelOf(context.job.spec) };
    this.#events = events;
    this.#refusalsMax = input.permit.refusalsMax ?? Number.POSITIVE_INFINITY;
    for (const { origin } of input.awaited ?? []) this.#rules.set(origin, null);
    const { clock, signal, random } = context;
    if (signal.aborted) this.#stop.abort();
    else signal.addEventListener('abort', () => this.#stop.abort(), { once: true });
    this.#slow = new SlowRequests(input.permit, input.tasks, clock, lateness);
    const { answered } = input.permit;
    this.#slowStart = answered === undefined ? null : new SlowStart(answered, clock);
    this.#pace = new Pace(input.permit, clock, signal, random && (() => random.next()), lateness);
  }

  async run(): Promise<void> {
    const { probe } = this.#input.permit;
    this.#underWay++;
    if (probe && probe.url !== null) await this.#requestKnownPage(probe.url);
    for (const fetch of this.#input.robots) await this.#readRobots(fetch);
    this.#end();
    const runners = Math.min(this.#input.permit.parallel, this.#input.tasks.length);
    await Promise.all(Array.from({ length: runners }, (_, index) => this.#runner(index)));
    const known = this.#input.permit.addresses?.knownPage ?? null;
    if (known !== null && this.#isRefusedAll) await this.#tellBan(known);
    this.#stopWaiting?.();
    this.#finished = true;
  }

  /** The last task begins: what is late after that keeps places, but none of the host's other pages needs to wait for it. */
  #awaitLate(): void {
    const { permit } = this.#input;
    if (permit.gapMs > 0) return;
    this.#stopWaiting = startTimer(this.#context.clock, this.#slow.lateMs ?? FIRST_LATE_MS, () => {
      if (this.#told) return;
      // No page has answered yet: perhaps the host does not.
      if (this.#slow.lateMs === null) return this.#awaitLate();
      this.#told = { count: this.#underWay, onUnderWay: this.#events.onLate };
      this.#events.onLate(this.#underWay);
    });
  }

  /** No other task begins: those that have not are deferred. Tells how many are under way, and again when they are half. */
  giveBack(onUnderWay: (count: number) => void): void {
    if (this.#told) return;
    const left = this.#input.tasks.slice(this.#next);
    this.#next = this.#input.tasks.length;
    for (const { id } of left) this.#events.onOutcome({ kind: 'deferred', taskId: id });
    this.#slowStart?.end();
    this.#stop.abort();
    this.#told = { count: this.#underWay, onUnderWay };
    onUnderWay(this.#underWay);
  }

  #end(): void {
    this.#underWay--;
    if (!this.#told || this.#underWay > this.#told.count / 2) return;
    this.#told.count = this.#underWay;
    this.#told.onUnderWay(this.#underWay);
  }

  /** What happened since the last call. */
  takeUse(): PermitUse {
    const sent = this.#pace.sent - this.#reportedSent;
    this.#reportedSent = this.#pace.sent;
    return {
      host: this.#input.permit.host,
      sent,
      lastSentAt: this.#pace.lastLeftAt,
      finished: this.#finished,
      smallestGapMs: this.#pace.takeSmallestGapMs(),
      firstSentAt: this.#pace.takeFirstLeftAt(),
      ...(this.#probe === null ? {} : { probe: this.#probe.result }),
      ...(this.#probe?.failure ? { probeFailure: this.#probe.failure } : {}),
    };
  }

  async #runner(index: number): Promise<void> {
    await this.#slowStart?.admission(index);
    while (this.#next < this.#input.tasks.length) {
      const pressure = this.#context.pressure();
      if (pressure) await this.#during('archive', pressure);
      const gate = this.#gateOf(this.#input.tasks[this.#next]);
      const entry = gate?.enter(this.#priority, this.#stop.signal);
      if (entry) await this.#during('cpu', entry);
      try {
        const task = this.#input.tasks[this.#next++];
        if (!task) continue;
        this.#underWay++;
        if (this.#isAllSent) this.#awaitLate();
        let isEnded = false;
        const end = () => {
          if (!isEnded) this.#end();
          isEnded = true;
        };
        this.#note(await this.#work(task, end).finally(end));
      } finally {
        gate?.leave(this.#priority);
      }
    }
    this.#slowStart?.end();
  }

  get #priority(): number {
    return this.#context.job.spec.priority ?? 0;
  }

  /** Hosts with a gap set the pace themselves, and a browser has few pages at a time anyway. */
  #gateOf(task: BatchTask | undefined): RequestGate | null {
    const isOpen = this.#input.permit.gapMs === 0 && task?.fetchMethod?.fetcher !== 'browser';
    return isOpen ? this.#gate : null;
  }

  #note(outcome: Outcome): void {
    if (this.#isRefused(outcome)) this.#pace.close();
    if (isAnswer(outcome)) this.#slowStart?.onAnswer();
    this.#events.onOutcome(outcome);
  }

  /** Whether the host wants no more requests now. A 503 or two belong to their pages, most of them to the host. */
  #isRefused(outcome: Outcome): boolean {
    if (outcome.kind === 'deferred' || outcome.trace === null) return false;
    this.#answers++;
    if (isAnswer(outcome)) {
      this.#refusals = 0;
      this.#refusalsMax = Math.min(this.#refusalsMax, TOLERATED);
    }
    if (outcome.kind !== 'failed') return false;
    if (isBanLike(outcome) && ++this.#refusals >= this.#refusalsMax) return true;
    const { code, trace, retryAfterMs } = outcome;
    if (isHostThrottling(code, trace.httpStatus, retryAfterMs)) return true;
    if (code !== 'unavailable') return false;
    this.#unavailable++;
    return this.#unavailable >= UNAVAILABLE_MIN && this.#unavailable * 2 > this.#answers;
  }

  /** `onAnswered`: the host has answered, and nothing more is asked of it for this task. */
  async #work(task: BatchTask, onAnswered: () => void): Promise<Outcome> {
    const rules = this.#rules.get(originOf(task.url));
    if (rules === null) return { kind: 'deferred', taskId: task.id };
    if (rules && !rules.allows(task.url)) {
      return { kind: 'skipped', taskId: task.id, code: 'robots', detail: null, trace: null };
    }
    let turn = await this.#during('hostGap', this.#pace.turn());
    if (!turn) return { kind: 'deferred', taskId: task.id };
    if (this.#input.bytes?.begin() === false) {
      turn.end();
      return { kind: 'deferred', taskId: task.id };
    }
    let bytes: number | null = null;
    const { spec } = this.#context.job;
    const request = this.#slow.add();
    // The last attempt of a page gets all the time there is.
    const isLast = task.attempt >= spec.retry.attempts;
    const { timer } = this.#context;
    let activity: Activity = task.fetchMethod?.fetcher === 'browser' ? 'browser' : 'network';
    timer?.begin(activity);
    try {
      const outcome = await processTask(task, {
        ...this.#context,
        onAnswer: () => {
          onAnswered();
          timer?.end(activity);
          activity = 'cpu';
          timer?.begin(activity);
          return this.#gate?.answered(this.#priority) ?? null;
        },
        onSent: () => {
          this.#slow.onSent(request);
          return turn!.left();
        },
        nextTurn: async () => {
          turn!.end();
          const next = await this.#pace.turn();
          turn = next ?? turn;
          return next !== null;
        },
        headersMs: isLast ? undefined : () => this.#slow.headersMs(request, this.#isAllSent),
        // A page that took longer gets the whole time at its next attempt.
        timeoutMs: task.attempt === 1 && !isLast ? this.#input.permit.timeoutMs : undefined,
      });
      if (outcome.kind !== 'deferred') bytes = outcome.trace?.bytes ?? null;
      this.#slow.onOutcome(request, outcome);
      return outcome;
    } catch (error) {
      // A bug of ours must not take the batch with it.
      return failed(task.id, 'internal', messageOf(error), null);
    } finally {
      timer?.end(activity);
      this.#slow.delete(request);
      turn.end();
      this.#input.bytes?.end(bytes);
    }
  }

  /** What needs no waiting takes no time. */
  #during<T>(activity: Activity, work: Promise<T> | T): Promise<T> | T {
    return work instanceof Promise ? (this.#context.timer?.during(activity, work) ?? work) : work;
  }

  get #isAllSent(): boolean {
    return this.#next >= this.#input.tasks.length;
  }

  /** Whether the host lets us in. If it does not, nothing else is sent. */
  async #requestKnownPage(url: string): Promise<void> {
    const [task] = this.#input.tasks;
    // The page may not have been fetched by a browser, and a remote API has an address of its own: there the task tells.
    const { fetchMethod } = task ?? {};
    if (fetchMethod && (fetchMethod.fetcher === 'browser' || fetchMethod.fetcher === 'api')) return;
    const turn = await this.#pace.turn();
    if (!turn) return this.#pace.close();
    this.#probe = await fetchKnownPage(url, task, { ...this.#context, onSent: turn.left });
    turn.end();
    if (this.#probe?.result !== 'answered') this.#pace.close();
  }

  /** A permit may be for fewer pages than are tolerated. */
  get #isRefusedAll(): boolean {
    return this.#refusals > 0 && this.#refusals >= Math.min(this.#refusalsMax, this.#answers);
  }

  /** Other addresses may still be let in: only a request from this one can tell whether it is banned. */
  async #tellBan(url: string): Promise<void> {
    this.#pace.reopen();
    await this.#requestKnownPage(url);
    this.#pace.close();
  }

  async #readRobots(fetch: RobotsFetch): Promise<void> {
    const turn = await this.#during('hostGap', this.#pace.turn());
    if (!turn) {
      this.#rules.set(fetch.origin, null);
      this.#events.onRobots({ kind: 'deferred', origin: fetch.origin });
      return;
    }
    const { job } = this.#context;
    const answer = fetchRobots(fetch, {
      ...this.#context,
      onSent: turn.left,
    });
    const outcome = await this.#during('robots', answer);
    turn.end();
    this.#events.onRobots(outcome);
    if (outcome.kind !== 'text' && outcome.kind !== 'absent') {
      this.#rules.set(fetch.origin, null);
      return;
    }
    const rules = parseRobots(
      outcome.kind === 'text' ? outcome.text : '',
      productToken(job.headers['user-agent']!),
    );
    const delayMs = delayOf(rules);
    if (delayMs !== null) this.#pace.slowDown(guardedGapMs(0, delayMs));
    this.#rules.set(fetch.origin, rules);
  }
}
