import { AnswerHistory } from './answer-history.ts';
import { addAnswer, verdictOf } from './sequential-test.ts';
import {
  ESTIMATE_ANSWERS_MIN,
  fittingWindowMs,
  isUsualLength,
  slidingWindowBehind,
  windowBehind,
} from './usual-windows.ts';

/**
 * Calibration: finds the highest rate that a host takes, as an experiment. It has no clock and sends nothing: `next` says
 * when the next request leaves, and who sends it tells what was sent and what was answered, on real time or on a virtual one.
 *
 * Run        requests at one rate, until the sequential test accepts or rejects it (`sequential-test.ts`).
 * Refusal    429, or 503 with Retry-After: the host asked for fewer requests.
 * Closure    the time from a refusal to the next answer. Only single requests are sent meanwhile.
 * Cycle      the time from the end of a closure to the end of the next one. What the host answered in it, divided by the
 *            time, is a rate that it takes for ever, however it counts: `estimate`. How long it counts: `usual-windows.ts`.
 * Proven     the highest rate that was accepted, and not refused since.
 *
 *   purpose of a run | rate                                         | accepted           | rejected
 *   -----------------|----------------------------------------------|--------------------|-------------------------------
 *   climb            | 1.6 × the proven one, or less where many are | climb; hold at cap | control; repeat after a long
 *                    | under way, at most the cap                   |                    | closure: it may be an outage
 *   repeat           | the one that was rejected                    | climb: an outage;  | bisect, estimate is known;
 *                    |                                              | done after a hold  | repeat, if out of order
 *   control          | the proven one, for a short time             | bisect             | the proven one was a mistake:
 *                    |                                              |                    | bisect below it
 *   bisect           | between the proven and the refused one       | bisect, until they | control, or bisect
 *                    |                                              | are close: hold    |
 *   hold             | the proven one, for the longest window known | done               | hold, a little lower
 *
 * A rate above the limit costs as many refusals as requests are under way. Where that is more than what is left of the allowed
 * ones, no second closure is asked for: the first must tell the limit (`#learnAtOnce`).
 */
export type Purpose = 'climb' | 'repeat' | 'control' | 'bisect' | 'hold';

export interface CalibrationLimits {
  /** The job's rate, or that of robots.txt: never exceeded. */
  cap: number;
  startRate: number;
  /** Requests under way at once. */
  parallelMax: number;
  /** Null: as many as the rates need that are tested. */
  requestsMax: number | null;
  refusalsMax: number;
}

export type CalibrationAnswer =
  | { kind: 'answered' }
  | { kind: 'refused'; retryAfterMs: number | null }
  /** 403 or a challenge: it ends here. */
  | { kind: 'blocked' }
  /** Any other failure: says nothing of a limit. */
  | { kind: 'failed' };

/** What one run brought: the evidence. */
export interface RunEvidence {
  purpose: Purpose;
  rate: number;
  sent: number;
  answered: number;
  refused: number;
  failed: number;
  ms: number;
  verdict: 'accepted' | 'rejected' | 'cut';
  /** Why, in words. */
  reason: string;
}

export type EndReason = 'held' | 'cap' | 'own-limit' | 'blocked' | 'refusals' | 'requests' | 'unreachable';

export interface CalibrationResult {
  end: EndReason;
  /** Requests per second to keep; null when no rate held. */
  rate: number | null;
  /** The rate that held, and the lowest that was refused. */
  held: number | null;
  refusedRate: number | null;
  /** Most requests that were under way at once while it held. */
  parallel: number;
  requests: number;
  refusals: number;
  /** The longest time over which the host was seen to count; 0 when within seconds. */
  windowMs: number;
  evidence: RunEvidence[];
}

type Step = { kind: 'send'; at: number } | { kind: 'wait' } | { kind: 'done' };

const STEP = 1.6;
/**
 * Where many requests are under way, all of them are refused before the first refusal is known: smaller steps, so that fewer
 * refusals find the limit. With the smallest ones the rate before the first refusal is near enough to it.
 */
const SMALL_STEP = 1.25;
const SMALLEST_STEP = 1.12;
const MANY_UNDER_WAY = 3;
const SEARCHES_MIN = 3;
const CLOSE = 1.08;
/** Rates this close are one. */
const SAME = 1.01;
const KEPT = 0.93;
const RUN_MS_MIN = 30_000;
const LONG_RUN_MS = 90_000;
/** Outages are over sooner, as a rule. */
const LONG_WINDOW_MS = 180_000;
const HOLD_MS_MIN = 60_000;
const CONTROL_SHARE = 0.05;
const CONTROL_MS = 10_000;
const CONTROL_REQUESTS_MIN = 5;
/** After this, a host that counts over a minute has forgotten a higher rate. */
const FORGETTING_MS = 62_000;
/** A closure of this length is no limit by the second. */
const LONG_CLOSURE_MS = 4_000;
/** The longest pause of a host that stays closed after the time that it asked for. */
const OVERDUE_MS_MAX = 300_000;
/** Who stays closed for longer than it says so often in a row is a limiter that does not say the truth. */
const OUTAGES_MAX = 3;
/** A window ends between two probes: requests at the next rate go on this much longer than it seemed to take. */
const WINDOW_SLACK = 1.05;
/**
 * A rate is held for so many windows. One that begins in the middle of a window and ends in the middle of the next was never
 * counted as a whole: at one host in nine that counts over a minute, a rate above the limit held for a minute.
 */
const PROOF_WINDOWS = 2.1;
/** When a closed host is asked again, after its first refusal: shortly after the windows that are usual. */
const PROBE_SECONDS = [1.2, 5, 31, 61, 305, 605, 1_210, 3_605];
/** A host that fails is asked again after these. */
const TROUBLE_SECONDS = [2, 5, 10, 20, 40, 60];
const TROUBLE_TRIES_MAX = 40;
/** Four failures in a row, or nearly so many. */
const TROUBLE_LEVEL = 0.34;
const RATE_MIN = 0.01;
/** Of several short ones, so many in all. */
const CYCLE_ANSWERS_MIN = 3;
/** How close to each other a rate is held and one is taken to be refused, where the limit itself is known. */
const NEAR = 1.03;
/** Further apart than this, the limit is not known yet. */
const FAR = 1.2;
/** Fewer changes between refusals and answers may be the end of a window. */
const TURNS_MIN = 4;
/** Hosts that count over longer are rare. */
const AVERAGE_MS = 600_000;
/** A limit that counts over a window is met again at a rate well above the average so far, and far below the one refused. */
const REPEAT_FACTOR = 3;
const REPEAT_SECONDS_MAX = 900;
const HOLD_STEP = 1.06;
/** A host that still counts what was sent long before gets time to forget it. */
const REST_MS = 60_000;
const REST_MS_MAX = 600_000;
/** After a refusal so many requests go out one by one, so that the next refusal finds none under way. */
const CAREFUL_ANSWERS = 2;
/** Answers that take so much longer than at first are queued up at the host. */
const QUEUED_FACTOR = 4;
const QUEUED_MS_MIN = 300;

interface Run {
  purpose: Purpose;
  rate: number;
  startedAt: number;
  /** Accepted no sooner. */
  needMs: number;
  needAnswers: number;
  sent: number;
  answered: number;
  refused: number;
  failed: number;
  score: number;
  /** Closures so far in which the host asked for a pause. */
  pauses: number;
  /** Time that closures and trouble took: it does not count as held. */
  lostMs: number;
  firstSentAt: number;
  lastSentAt: number;
  underWayMax: number;
  latencies: number[];
}

/** One request at a time is sent until the host answers. */
interface Closure {
  /** When the first refused request was sent, and the last. */
  from: number;
  lastProbeAt: number;
  probes: number;
  /** Not asked before. */
  until: number;
  /** The end of the pause that the host asked for; 0 when it asked for none. */
  askedUntil: number;
  /** The run was rejected already. */
  isRejected: boolean;
  refused: number;
  /** Answers to requests that were sent after the first refused one, and how often a refusal was followed by one. */
  answered: number;
  turns: number;
  wasRefused: boolean;
}

/** From the end of a closure, or from the start, to the end of the next. */
interface Cycle {
  answered: number;
  ms: number;
  msMin: number;
  msMax: number;
  /** It began with the end of a closure, and no rate held in it. */
  isWhole: boolean;
  closedMs: number;
  /** When the closure began, its last refused request, and when the host said that it would end. */
  from: number;
  lastProbeAt: number;
  openAt: number;
}

interface Accepted {
  rate: number;
  /** For how long. */
  ms: number;
}

export class Calibration {
  readonly #limits: CalibrationLimits;
  #run: Run;
  #closure: Closure | null = null;
  #trouble: { tries: number; until: number } | null = null;
  #underWay = 0;
  #lastSentAt = Number.NEGATIVE_INFINITY;
  /** How long after its time the last request was sent: timers are late. */
  #lateMs = 0;
  /** Of the last ten or so answers, how many were failures: each weighs a tenth less than the next. */
  #failureLevel = 0;
  #end: EndReason | null = null;
  #requests = 0;
  #refusals = 0;
  #evidence: RunEvidence[] = [];
  #accepted: Accepted[] = [];
  #refusedRate: number | null = null;
  #held: { rate: number; parallel: number } | null = null;
  /** Answers since the last closure ended, or since the start. */
  #stretch: { from: number; answered: number; isCycle: boolean; hasHeld: boolean };
  /** The last probe that was refused before the present stretch began. */
  #lastEarliest = 0;
  #firstCycle: Cycle | null = null;
  /** The rate that was followed by the first long closure. */
  #suspected: number | null = null;
  #restUntil = 0;
  /** Rates in a row that were refused because of what was sent before. */
  #fullRejections = 0;
  /** When the last closure began. */
  #refusedAt = 0;
  #highestRate = 1;
  /** The pause that the first refusal of the last closure asked for, and whether the host refused after its end, too. */
  #askedMs = 0;
  #isOverdue = false;
  /** The same of the closure after which a rate was repeated. */
  #wasOverdue = false;
  /** How long the last long closure lasted. */
  #closedMs = 0;
  /** The last rate that was rejected. */
  #below: number | null = null;
  /** How long the host was closed before a rate was repeated: later rates are held for longer than that. */
  #suspectMs = 0;
  /** Refusals before that closure, and those that turned out to be of outages: they do not use up what is allowed. */
  #suspectRefusals = 0;
  #outageRefusals = 0;
  /** Closures in a row that were longer than the host had said. */
  #outages = 0;
  /** Of the run that an outage interrupted, where it was to hold a rate; otherwise 0. */
  #holdMs = 0;
  /** Requests wait at the host: nothing is sent until all are answered. */
  #isDraining = false;
  /** Sums over all cycles in which no rate held, from refusal to refusal: then a bucket is as empty as it was. */
  #cycles = { ms: 0, answered: 0 };
  /** What the host takes for ever, by its cycles; null when that is not known. */
  #estimate: number | null = null;
  /** Answers of the last cycle before it was refused: what is held must bring more. */
  #cycleAnswers = 0;
  #windowMs = 0;
  /** It refused, and answered again within seconds. */
  #hasShortClosures = false;
  /** Refusals are followed by long closures, and no outage was the reason. */
  #closesLong = false;
  /** Rates that were believed are refused later: the host counts over longer than a run. */
  #hasMemory = false;
  readonly #history = new AnswerHistory();
  #baseLatencyMs: number | null = null;
  #latencyMs = 100;

  constructor(limits: CalibrationLimits, now: number) {
    this.#limits = limits;
    this.#stretch = { from: now, answered: 0, isCycle: false, hasHeld: false };
    this.#run = newRun('climb', Math.min(limits.cap, limits.startRate), now);
  }

  get run(): Readonly<Pick<Run, 'purpose' | 'rate' | 'sent' | 'answered' | 'refused'>> {
    return this.#run;
  }

  get counts(): { requests: number; refusals: number } {
    return { requests: this.#requests, refusals: this.#refusals };
  }

  /** Whether the host is closed or fails, so that it is only probed. */
  get isProbing(): boolean {
    return this.#closure !== null || this.#trouble !== null;
  }

  /** What to do now: send a request at a time, or wait for an answer. */
  next(now: number): Step {
    if (this.#end !== null) return { kind: 'done' };
    if (this.#requests >= this.#requestsMax()) return { kind: 'wait' };
    const pacedAt = Math.max(now, this.#dueAt(), this.#restUntil);
    if (this.isProbing) {
      if (this.#underWay > 0) return { kind: 'wait' };
      return { kind: 'send', at: Math.max(pacedAt, this.#closure?.until ?? 0, this.#trouble?.until ?? 0) };
    }
    if (this.#isDraining && this.#underWay > 0) return { kind: 'wait' };
    this.#isDraining = false;
    const isCareful = this.#refusals > 0 && this.#run.answered < CAREFUL_ANSWERS;
    if (this.#underWay >= (isCareful ? 1 : this.#limits.parallelMax)) return { kind: 'wait' };
    return { kind: 'send', at: pacedAt };
  }

  #refusalsLeft(): number {
    return this.#limits.refusalsMax - this.#refusals + this.#outageRefusals;
  }

  /** A request that was sent late does not move the next ones, or less would be sent than is tested; the cap holds always. */
  #dueAt(): number {
    return this.#lastSentAt + Math.max(this.#gapMs() - this.#lateMs, 1_000 / this.#limits.cap);
  }

  #gapMs(): number {
    return 1_000 / this.#run.rate;
  }

  sent(now: number): void {
    const run = this.#run;
    this.#requests++;
    const lateMs = now - this.#dueAt();
    // Later than a whole gap: it waited for something else.
    this.#lateMs = lateMs > 0 && lateMs < this.#gapMs() ? lateMs : 0;
    this.#underWay++;
    this.#lastSentAt = now;
    if (run.sent === 0) run.firstSentAt = now;
    run.sent++;
    run.lastSentAt = now;
    run.underWayMax = Math.max(run.underWayMax, this.#underWay);
  }

  answered(now: number, sentAt: number, answer: CalibrationAnswer): void {
    this.#underWay--;
    if (this.#end !== null) return;
    if (answer.kind === 'blocked') {
      this.#run.refused++;
      this.#refusedRate = Math.min(this.#refusedRate ?? this.#run.rate, this.#run.rate);
      this.#note('rejected', 'the host refused us: 403 or a challenge');
      this.#finish('blocked');
    } else if (answer.kind === 'refused') this.#onRefused(now, sentAt, answer.retryAfterMs);
    else if (answer.kind === 'failed') this.#onFailed(now, sentAt);
    else this.#onAnswered(now, sentAt);
    if (this.#end === null) this.#checkBudgets();
  }

  #onFailed(now: number, sentAt: number): void {
    const run = this.#run;
    run.failed++;
    // Those that were under way when it began tell nothing new.
    if (this.#trouble && sentAt < this.#trouble.until) return;
    this.#failureLevel = this.#failureLevel * 0.9 + 0.1;
    if (this.#closure) {
      this.#closure.until = now + TROUBLE_SECONDS[0]! * 1_000;
      return;
    }
    if (!this.#trouble && this.#failureLevel < TROUBLE_LEVEL) return;
    const tries = (this.#trouble?.tries ?? -1) + 1;
    if (tries >= TROUBLE_TRIES_MAX) {
      this.#note('cut', 'the host does not answer any more');
      this.#finish('unreachable');
      return;
    }
    const pauseMs = TROUBLE_SECONDS[Math.min(tries, TROUBLE_SECONDS.length - 1)]! * 1_000;
    this.#trouble = { tries, until: now + pauseMs };
  }

  #onRefused(now: number, sentAt: number, retryAfterMs: number | null): void {
    const run = this.#run;
    this.#refusals++;
    if (!this.#closure) this.#askedMs = retryAfterMs ?? 0;
    this.#isOverdue =
      this.#closure !== null && this.#closure.askedUntil > 0 && sentAt >= this.#closure.askedUntil;
    run.refused++;
    run.score = addAnswer(run.score, true);
    const askedUntil = retryAfterMs === null ? 0 : now + retryAfterMs;
    if (!this.#closure) {
      this.#closure = {
        from: sentAt,
        lastProbeAt: sentAt,
        probes: 0,
        until: askedUntil,
        askedUntil,
        isRejected: false,
        ...{ refused: 0, answered: 0, turns: 0, wasRefused: true },
      };
      if (retryAfterMs !== null) run.pauses++;
    } else {
      this.#closure.from = Math.min(this.#closure.from, sentAt);
      this.#closure.lastProbeAt = Math.max(this.#closure.lastProbeAt, sentAt);
      this.#closure.until = Math.max(this.#closure.until, askedUntil);
      this.#closure.askedUntil = Math.max(this.#closure.askedUntil, askedUntil);
    }
    const closure = this.#closure;
    closure.refused++;
    closure.wasRefused = true;
    // The second pause that is asked for decides: while it lasts nothing is sent that the test could count.
    if (verdictOf(run.score) === 'rejected' || run.pauses >= 2) closure.isRejected = true;
    const isProbe = this.#underWay === 0;
    // It said when it would open, and did not: that is no limiter, and not to be asked as often as one.
    if (isProbe && this.#isOverdue && retryAfterMs !== null && retryAfterMs >= LONG_CLOSURE_MS)
      closure.until = Math.max(closure.until, now + Math.min(now - closure.from, OVERDUE_MS_MAX));
    if (isProbe && closure.isRejected && retryAfterMs === null) {
      closure.until = Math.max(closure.until, this.#probeAt(closure, now));
    }
  }

  /** After the usual windows, or when the window that is known must be over. */
  #probeAt(closure: Closure, now: number): number {
    const windowEndsAt =
      this.#windowMs > 0 && this.#stretch.isCycle ? this.#stretch.from + this.#windowMs : 0;
    const expectedAt =
      windowEndsAt > 0 ? windowEndsAt : this.#closedMs > 0 ? closure.from + this.#closedMs : 0;
    if (expectedAt > now + 1_000) return expectedAt + 500;
    while (closure.probes < PROBE_SECONDS.length) {
      const at = closure.from + PROBE_SECONDS[closure.probes++]! * 1_000;
      if (at >= now + 1_000) return at;
    }
    return now + PROBE_SECONDS.at(-1)! * 1_000;
  }

  #onAnswered(now: number, sentAt: number): void {
    const run = this.#run;
    run.answered++;
    run.score = addAnswer(run.score, false);
    this.#history.add(sentAt);
    this.#stretch.answered++;
    this.#failureLevel *= 0.9;
    const latencyMs = now - sentAt;
    this.#latencyMs += (latencyMs - this.#latencyMs) * 0.05;
    if (this.#trouble) {
      // What happened at a host in trouble says nothing: the run begins again.
      this.#trouble = null;
      this.#failureLevel = 0;
      this.#note('cut', 'the host failed; again from the start');
      this.#start(run.purpose, run.rate, now, run);
      return;
    }
    if (this.#isDraining) return;
    if (this.#closure) {
      // One that was sent before the refusal says nothing of its end.
      if (sentAt <= this.#closure.from) return;
      if (this.#underWay === 0) this.#onReopened(now, sentAt);
      else noteAnswer(this.#closure);
      return;
    }
    run.latencies.push(latencyMs);
    if (run.latencies.length > 60) run.latencies.shift();
    this.#judge(now);
  }

  #judge(now: number): void {
    const run = this.#run;
    if (this.#isQueued()) {
      this.#note('rejected', 'answers take far longer than at a lower rate: requests wait in a queue');
      this.#refusedRate = Math.min(this.#refusedRate ?? run.rate, run.rate);
      this.#accepted = this.#accepted.filter(({ rate }) => rate < run.rate);
      this.#isDraining = true;
      this.#startNext(now);
      return;
    }
    const heldMs = now - run.startedAt - run.lostMs;
    if (heldMs < run.needMs || run.answered < run.needAnswers) return;
    if (run.purpose !== 'control' && verdictOf(run.score) !== 'accepted') return;
    this.#onAccepted(now);
  }

  #isQueued(): boolean {
    const { latencies, answered } = this.#run;
    // Not with every answer: there are many.
    if (this.#baseLatencyMs === null || latencies.length < 30 || answered % 15 !== 0) return false;
    const limitMs = Math.max(this.#baseLatencyMs * QUEUED_FACTOR, this.#baseLatencyMs + QUEUED_MS_MIN);
    return median(latencies) > limitMs;
  }

  #onAccepted(now: number): void {
    const run = this.#run;
    const sentRate = ((run.sent - 1) * 1_000) / Math.max(1, run.lastSentAt - run.firstSentAt - run.lostMs);
    const isShort = sentRate < run.rate * 0.85;
    const isOwnLimit = run.purpose === 'climb' && isShort;
    // Fewer were sent than asked for: what is proven is what was sent. With pauses after refusals, it is what was answered.
    const answeredRate = (run.answered * 1_000) / Math.max(1, now - run.startedAt);
    const rate = isShort ? sentRate : run.refused > 0 ? Math.min(run.rate, answeredRate) : run.rate;
    this.#note('accepted', isOwnLimit ? 'it held; more could not be sent' : 'it held');
    if (run.purpose === 'control') {
      this.#startNext(now);
      return;
    }
    if (run.purpose === 'repeat') {
      // An outage, or a host that closes for long whatever it counts over. To meet that again must be affordable.
      const isCleared = this.#wasOverdue || this.#affords(this.#suspected!, 2);
      // What was refused before an outage still is.
      const refusedBefore =
        this.#wasOverdue && (this.#refusedRate ?? 0) > run.rate ? this.#refusedRate : null;
      this.#refusedRate = isCleared ? refusedBefore : this.#suspected;
      // A much lower rate does not show that the higher one was not to blame.
      const isOutage = isCleared && run.rate * STEP >= this.#suspected!;
      const outageRefusals = this.#outageRefusals + (isOutage ? this.#suspectRefusals : 0);
      this.#outageRefusals = Math.min(this.#limits.refusalsMax, outageRefusals);
      this.#outages = 0;
      this.#accepted = this.#accepted.filter((accepted) => accepted.rate <= run.rate);
    }
    // It held, but brought no more than a lower rate did: to try it again would bring the same.
    if (run.purpose === 'bisect' && rate <= (this.#proven() ?? 0) * SAME)
      this.#refusedRate = Math.min(this.#refusedRate ?? run.rate, run.rate);
    this.#baseLatencyMs ??= median(run.latencies);
    this.#stretch.hasHeld = true;
    this.#accepted.push({ rate, ms: now - run.startedAt - run.lostMs });
    this.#fullRejections = 0;
    // It held, and the rates just above it were refused only for what was sent before.
    const isLow = this.#hasMemory && run.purpose === 'hold' && (this.#refusedRate ?? 0) > rate * FAR;
    if (isLow && this.#windowMs === 0 && this.#affords(rate, 2)) {
      this.#startNext(now);
      return;
    }
    const isHeld =
      run.purpose === 'hold' || (run.purpose === 'repeat' && this.#wasOverdue && this.#holdMs > 0);
    if (isHeld || isOwnLimit) {
      this.#held = { rate, parallel: run.underWayMax };
      this.#finish(isOwnLimit ? 'own-limit' : rate >= this.#limits.cap ? 'cap' : 'held');
      return;
    }
    this.#startNext(now);
  }

  /** The first answer after refusals. */
  #onReopened(now: number, sentAt: number): void {
    const run = this.#run;
    const closure = this.#closure!;
    this.#closure = null;
    run.lostMs += now - closure.from;
    const closedMs = sentAt - closure.from;
    if (closure.askedUntil > 0 && closure.askedUntil <= sentAt)
      closure.lastProbeAt = Math.max(closure.lastProbeAt, closure.askedUntil - 1_000);
    const isLong = closedMs >= LONG_CLOSURE_MS;
    if (isLong) this.#closedMs = closedMs;
    else this.#hasShortClosures = true;
    if (!closure.isRejected && !isLong) return;
    const { from, answered, isCycle, hasHeld } = this.#stretch;
    this.#stretch = { from: sentAt, answered: 1, isCycle: true, hasHeld: false };
    this.#note('rejected', isLong ? `refused, and closed for ${Math.round(closedMs / 1_000)} s` : 'refused');
    const cycle: Cycle = {
      answered,
      ms: sentAt - from,
      // It began and ended between two probes.
      msMin: closure.lastProbeAt - from,
      msMax: sentAt - (isCycle ? this.#lastEarliest : from),
      isWhole: isCycle && !hasHeld,
      closedMs,
      from: closure.from,
      lastProbeAt: closure.lastProbeAt,
      openAt: closure.from + this.#askedMs,
    };
    this.#lastEarliest = closure.lastProbeAt;
    if (cycle.isWhole) {
      this.#cycleAnswers = answered;
      this.#cycles.ms += closure.from - this.#refusedAt;
      this.#cycles.answered += answered;
    }
    this.#refusedAt = closure.from;
    if (run.purpose === 'repeat') this.#afterRepeat(now, cycle, isLong);
    else if (isLong) this.#afterLongClosure(now, cycle);
    else this.#afterShortClosure(now, hasHeld);
  }

  /** An outage closes a host once; a limit does it again. */
  #afterLongClosure(now: number, cycle: Cycle): void {
    const { rate } = this.#run;
    if (this.#closesLong) {
      this.#reject(rate);
      // A rate that held for a whole window says more than the time of one more closure.
      if (this.#windowMs === 0 || this.#proven() === null) this.#learnWindow(cycle);
      else this.#restUntil = this.#lastSentAt + this.#windowMs;
      this.#startNext(now);
      return;
    }
    this.#firstCycle = cycle;
    this.#suspected = rate;
    this.#suspectRefusals = this.#run.refused;
    this.#wasOverdue = this.#isOverdue;
    if (this.#isOverdue) {
      this.#repeatAfterOutage(now, cycle);
      return;
    }
    this.#suspectMs = Math.max(this.#suspectMs, cycle.closedMs);
    if (!this.#affords(rate) && this.#learnAtOnce(cycle)) {
      this.#startNext(now);
      return;
    }
    const average = (cycle.answered * 1_000) / cycle.ms;
    const repeated = Math.min(rate, average * REPEAT_FACTOR);
    this.#start('repeat', repeated, now, {
      // The end of a long window: whoever has to meet it again may begin in the middle of one.
      needMs: Math.max(RUN_MS_MIN, this.#suspectMs * (this.#suspectMs > LONG_WINDOW_MS ? 4 : 2)),
      needAnswers: Math.ceil(Math.min(cycle.answered * 1.2, repeated * REPEAT_SECONDS_MAX)),
    });
  }

  /** Limiters open when they said they would; what goes on refusing is out of order. The same rate shows whether it was that. */
  #repeatAfterOutage(now: number, { from, lastProbeAt }: Cycle): void {
    this.#outages++;
    const { purpose, needMs } = this.#run;
    if (purpose !== 'repeat') this.#holdMs = purpose === 'hold' ? needMs : 0;
    const leastMs = Math.max(RUN_MS_MIN, this.#holdMs, 2 * (lastProbeAt - from));
    this.#start('repeat', this.#suspected!, now, { needMs: leastMs });
  }

  /**
   * The limit behind a closure, where another refusal is too much to ask for. What held for longer than the host was closed is
   * below the limit. So it is where the host asked for a pause of a round length, which is a penalty and not the rest of a
   * window. Otherwise the window is looked for.
   */
  #learnAtOnce(cycle: Cycle): boolean {
    const { rate } = this.#run;
    const isRound = isUsualLength(this.#askedMs);
    const isTold = this.#askedMs > 0 && !isRound;
    const window = isTold ? windowBehind(this.#history, cycle) : null;
    if (window === null && cycle.closedMs > LONG_RUN_MS && !isRound) return false;
    if (window === null && this.#proven() === null) return false;
    this.#closesLong = true;
    this.#reject(rate);
    if (window === null) return true;
    this.#know(window);
    return true;
  }

  /**
   * There is no asking the host any more. It may have said when it opens, so that the window is known. Where it took some
   * requests and refused others all the time, it takes what it took: a bucket that is empty. Otherwise, where nothing is known
   * of the time over which it counts, or what held before was refused, its window began within the last ten minutes: in the
   * middle of them, as far as is known. Where it opened again between refusals, it counts within seconds, and what held is kept.
   */
  #learnFromLast(closure: Closure): void {
    const { from, refused } = closure;
    const isRound = isUsualLength(this.#askedMs);
    const isWindow = this.#askedMs >= LONG_CLOSURE_MS && !isRound;
    const window = isWindow
      ? windowBehind(this.#history, { from, openAt: from + this.#askedMs, closedMs: this.#askedMs })
      : null;
    const proven = this.#proven();
    if (window) this.#accepted = [{ rate: window.rate / NEAR, ms: 0 }];
    if (window || isRound || proven === null || this.#windowMs > 0) return;
    const isFirst = this.#refusals === refused;
    const isBroken = this.#run.purpose === 'repeat' || this.#run.rate <= proven * 1.001;
    if (!isFirst && !isBroken) return;
    if (this.#run.purpose === 'hold' && this.#hasShortClosures && !this.#hasMemory) {
      // It counts within seconds, and this was a little too much.
      this.#reject(this.#run.rate);
      if (this.#accepted.length === 0) this.#accepted = [{ rate: this.#run.rate / HOLD_STEP, ms: 0 }];
      return;
    }
    const { answered, startedAt, refused: refusedInRun } = this.#run;
    const middle = this.#history.between(from - AVERAGE_MS / 2, from) / AVERAGE_MS;
    // It opened again within the run, and answered for a while: what it answered is what it takes.
    const isThin = refusedInRun > refused && from - startedAt >= CONTROL_MS;
    if (isThin) this.#keepAtMost((answered * 1_000) / (from - startedAt));
    else if (closure.turns >= TURNS_MIN) this.#keepAtMost(takenDuring(closure) / NEAR);
    else this.#keepAtMost(Math.min(middle * 1_000, this.#takenSinceRefusal(from) / NEAR));
  }

  /** What it took from one refusal to the next: a bucket was empty at both. */
  #takenSinceRefusal(at: number): number {
    const { isCycle, answered } = this.#stretch;
    if (!isCycle || answered < ESTIMATE_ANSWERS_MIN) return Number.POSITIVE_INFINITY;
    return (answered * 1_000) / Math.max(1, at - this.#refusedAt);
  }

  #keepAtMost(rate: number): void {
    this.#accepted = [{ rate: Math.min(rate, this.#proven() ?? rate), ms: 0 }];
    this.#hasMemory = true;
  }

  #afterRepeat(now: number, cycle: Cycle, isLong: boolean): void {
    if (this.#wasOverdue && this.#isOverdue && this.#outages < OUTAGES_MAX) {
      this.#suspectRefusals += this.#run.refused;
      this.#repeatAfterOutage(now, cycle);
      return;
    }
    this.#closesLong = true;
    this.#reject(Math.min(this.#run.rate, this.#suspected ?? this.#run.rate));
    this.#learnWindow(isLong ? cycle : this.#firstCycle!);
    this.#startNext(now);
  }

  /**
   * A host that takes so many requests and then none for a while counts over a longer time. Where lower rates brought more
   * answers than that, it does not: it closes as a punishment.
   */
  #learnWindow(cycle: Cycle): void {
    const answersOf = ({ rate, ms }: Accepted) => (rate * Math.min(ms, cycle.ms)) / 1_000;
    if (this.#accepted.some((accepted) => answersOf(accepted) > 2 * cycle.answered)) return;
    this.#hasMemory = true;
    if (cycle.isWhole || this.#windowMs === 0) {
      const windowMs = fittingWindowMs(cycle);
      this.#windowMs = Math.max(this.#windowMs, windowMs);
      if (cycle.answered >= ESTIMATE_ANSWERS_MIN) this.#estimate = (cycle.answered * 1_000) / windowMs;
      const rateMax = (this.#estimate ?? this.#run.rate / STEP) * 1.02;
      // What held for two whole windows is below the limit, whatever one cycle says.
      const provenMs = windowMs * PROOF_WINDOWS;
      this.#accepted = this.#accepted.filter(({ rate, ms }) => rate <= rateMax || ms >= provenMs);
    }
    // What was sent before still counts until a whole window is over.
    this.#restUntil = this.#lastSentAt + this.#windowMs;
  }

  #afterShortClosure(now: number, hadHeld: boolean): void {
    const { rate, purpose, sent, answered, needAnswers, startedAt, lastSentAt, needMs } = this.#run;
    const proven = this.#proven();
    const isBroken = purpose === 'control' || (proven !== null && rate <= proven * 1.001);
    const isGross = answered < needAnswers / 4 || lastSentAt - startedAt < needMs / 4;
    if (purpose === 'hold' && !isGross) {
      this.#reject(rate);
      this.#start('hold', rate / HOLD_STEP, now);
      return;
    }
    if (isBroken) this.#hasMemory = true;
    const isFull = this.#hasMemory && !hadHeld;
    this.#reject(rate, isFull);
    if (isFull && ++this.#fullRejections > 3)
      this.#restUntil = now + Math.min(REST_MS_MAX, REST_MS * 4 ** (this.#fullRejections - 4));
    if (this.#hasMemory && !hadHeld) this.#learnFromCycles();
    if (proven === null || this.#hasMemory) this.#startNext(now);
    else {
      const controls = Math.max(CONTROL_REQUESTS_MIN, Math.ceil(sent * CONTROL_SHARE));
      // Refused so soon, it may be for what was sent before: a minute at a rate that holds makes room for the next.
      const needMs = purpose === 'bisect' && isGross ? FORGETTING_MS : CONTROL_MS;
      this.#start('control', proven, now, { needMs, needAnswers: controls });
    }
  }

  /**
   * A host that is refused, answers, and is refused again, without a pause: what it answered meanwhile is what it takes. That is
   * so of a bucket. A window that slides takes as much as leaves it: so many as were sent a window ago, which may be far
   * fewer than it takes for ever, and then what it answered within the window is its limit.
   */
  #learnFromCycles(): void {
    if (this.#windowMs > 0 || this.#cycles.answered < CYCLE_ANSWERS_MIN) return;
    const estimate = (this.#cycles.answered * 1_000) / this.#cycles.ms;
    const sliding = slidingWindowBehind(this.#history, this.#refusedAt, estimate);
    if (sliding) {
      this.#know(sliding);
      this.#restUntil = this.#lastSentAt + sliding.ms;
      return;
    }
    this.#estimate = estimate;
    this.#accepted = this.#accepted.filter(({ rate }) => rate <= estimate * 1.02);
  }

  /** The window and so the limit are known. What held above it did so because its window had begun with lower rates. */
  #know({ ms, rate }: { ms: number; rate: number }): void {
    this.#windowMs = ms;
    this.#estimate = rate;
    this.#refusedRate = rate * NEAR;
    this.#accepted = [
      ...this.#accepted.filter((one) => one.rate < rate / NEAR),
      { rate: rate / NEAR, ms: 0 },
    ];
  }

  #reject(rate: number, isFull = false): void {
    this.#accepted = this.#accepted.filter((accepted) => accepted.rate < rate * 0.999);
    this.#below = rate;
    // What was sent before at higher rates still counts: a lower rate, refused so soon, may well be below the limit.
    if (!isFull) this.#refusedRate = Math.min(this.#refusedRate ?? rate, rate);
  }

  #proven(): number | null {
    return this.#accepted.length === 0 ? null : Math.max(...this.#accepted.map(({ rate }) => rate));
  }

  #startNext(now: number): void {
    const proven = this.#proven();
    const refused = this.#refusedRate;
    const { cap } = this.#limits;
    if (refused === null) {
      const next = Math.min(cap, proven! * this.#step(proven!));
      // With some refusals it held still: the limit is near, and the next rate may take more of them than are left.
      const isNear = this.#run.refused > 0 && !this.#affords(next);
      this.#start(proven! >= cap || isNear ? 'hold' : 'climb', isNear ? proven! : next, now);
    } else if (proven === null) {
      const known = this.#below ?? refused;
      // Refused below the estimate too: what was sent long before still counts.
      const isStale = this.#estimate !== null && known <= this.#estimate * 1.1;
      const below =
        this.#estimate === null || isStale ? known / STEP : Math.min(this.#estimate * 0.97, known / 1.15);
      this.#start(this.#affords(below) ? 'bisect' : 'hold', below, now);
    } else {
      // Until a rate has held again, one that was refused for what was sent before counts like any other.
      const bound = this.#fullRejections > 0 ? Math.min(refused, this.#below ?? refused) : refused;
      const rate = this.#between(proven, bound);
      if (bound / proven <= CLOSE || !this.#affords(rate)) this.#start('hold', proven, now);
      else this.#start('bisect', rate, now);
    }
  }

  #between(proven: number, refused: number): number {
    const middle = Math.sqrt(proven * refused);
    if (this.#estimate === null) return middle;
    const estimate = this.#estimate * 0.97;
    if (estimate > proven * 1.03) return Math.min(middle, estimate);
    return Math.min(middle, proven * (proven > estimate * 1.25 && this.#windowMs === 0 ? 1.3 : 1.15));
  }

  /** One refusal, and those under way with it: what held before is kept then. */
  #affords(rate: number, times = 1): boolean {
    return this.#refusalsLeft() >= times * this.#refusalsAt(rate);
  }

  #step(rate: number): number {
    if (!this.#hasManyUnderWay(rate)) return STEP;
    return this.#refusalsLeft() < SEARCHES_MIN * this.#refusalsAt(rate) ? SMALLEST_STEP : SMALL_STEP;
  }

  /** How many refusals one test of a rate above the limit takes. */
  #refusalsAt(rate: number): number {
    return 1 + Math.ceil(rate * (this.#latencyMs / 1_000));
  }

  #hasManyUnderWay(rate: number): boolean {
    return rate * (this.#latencyMs / 1_000) > MANY_UNDER_WAY;
  }

  #start(
    purpose: Purpose,
    rate: number,
    now: number,
    need: Partial<Pick<Run, 'needMs' | 'needAnswers'>> = {},
  ): void {
    const run = newRun(purpose, Math.max(RATE_MIN, rate), Math.max(now, this.#restUntil));
    if (purpose === 'climb')
      run.needMs = Math.max(this.#hasManyUnderWay(rate) ? LONG_RUN_MS : RUN_MS_MIN, this.#suspectMs * 2);
    if (purpose === 'bisect' || purpose === 'hold') {
      const least = purpose === 'hold' || this.#hasMemory ? HOLD_MS_MIN : RUN_MS_MIN;
      run.needMs = Math.max(least, this.#windowMs * PROOF_WINDOWS);
      if (this.#hasMemory) run.needAnswers = Math.ceil(this.#cycleAnswers * WINDOW_SLACK);
    }
    this.#highestRate = Math.max(this.#highestRate, run.rate);
    this.#run = { ...run, ...(need.needMs === undefined ? {} : { needMs: need.needMs }) };
    if (need.needAnswers !== undefined) this.#run.needAnswers = need.needAnswers;
  }

  #checkBudgets(): void {
    if (this.#refusalsLeft() <= 0) {
      this.#note('cut', 'as many refusals as allowed');
      if (this.#closure && !this.#isOverdue) this.#learnFromLast(this.#closure);
      this.#finish('refusals');
    } else if (this.#requests >= this.#requestsMax() && this.#underWay === 0) {
      this.#note('cut', 'as many requests as allowed');
      this.#finish('requests');
    }
  }

  /** Ten minutes at the tested rate, and some windows where the host counts over longer. */
  #requestsMax(): number {
    const { requestsMax } = this.#limits;
    return requestsMax ?? 3_000 + this.#highestRate * (2_400 + (12 * this.#windowMs) / 1_000);
  }

  #note(verdict: RunEvidence['verdict'], reason: string): void {
    const { purpose, rate, sent, answered, refused, failed, startedAt, lastSentAt } = this.#run;
    const ms = Math.round(Math.max(0, lastSentAt - startedAt));
    const shown = Number(rate.toPrecision(5));
    this.#evidence.push({ purpose, rate: shown, sent, answered, refused, failed, ms, verdict, reason });
  }

  #finish(end: EndReason): void {
    this.#end = end;
  }

  result(): CalibrationResult {
    const held = this.#held?.rate ?? this.#bestGuess();
    const isWhole = this.#end === 'cap' || this.#end === 'own-limit';
    return {
      end: this.#end ?? 'requests',
      rate: held === null ? null : isWhole ? held : held * KEPT,
      held: this.#held?.rate ?? null,
      refusedRate: this.#refusedRate,
      parallel: Math.max(1, this.#held?.parallel ?? Math.ceil((held ?? 0) * (this.#latencyMs / 1_000) * 2)),
      requests: this.#requests,
      refusals: this.#refusals,
      windowMs: this.#windowMs,
      evidence: this.#evidence,
    };
  }

  /** When it ends before a rate was held. */
  #bestGuess(): number | null {
    const proven = this.#proven();
    if (proven !== null && (this.#hasMemory || this.#refusedRate === null)) return proven;
    const estimate = this.#estimate ?? this.#average();
    if (estimate === null || this.#refusedRate === null) return proven;
    return proven !== null && !this.#closesLong ? proven : Math.min(estimate, this.#refusedRate);
  }

  #average(): number | null {
    const cycle = this.#firstCycle;
    return cycle && cycle.ms > 0 ? (cycle.answered * 1_000) / cycle.ms : null;
  }
}

function noteAnswer(closure: Closure): void {
  closure.answered++;
  if (closure.wasRefused) closure.turns++;
  closure.wasRefused = false;
}

/** The rate at which a host took requests while it refused others. */
function takenDuring({ answered, from, lastProbeAt }: Closure): number {
  return (answered * 1_000) / Math.max(1, lastProbeAt - from);
}

function newRun(purpose: Purpose, rate: number, now: number): Run {
  return {
    ...{ purpose, rate, startedAt: now, needMs: RUN_MS_MIN, needAnswers: 0 },
    ...{ sent: 0, answered: 0, refused: 0, failed: 0, score: 0, pauses: 0, lostMs: 0 },
    ...{ firstSentAt: now, lastSentAt: now, underWayMax: 0, latencies: [] },
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
