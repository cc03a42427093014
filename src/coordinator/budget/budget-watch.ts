import type { Report } from '../../core/batch/batch.ts';
import {
  addTaskCosts,
  type Budget,
  dailyBudgetOf,
  exhausted,
  exhaustedOfKey,
  isLimited,
  NO_TASK_COSTS,
  type Spent,
  tasksWithin,
  tasksWithinKey,
} from '../../core/budget/budget.ts';
import {
  billOf,
  type CostLine,
  PRICES_DEFAULT,
  type Prices,
  quantityOf,
  sumOfUsage,
  totalOf,
  type Usage,
  usageOfReport,
} from '../../core/cost/cost.ts';
import type { Counters } from '../../core/model.ts';
import type { Clock } from '../../ports/ambient.ts';
import type { Job, Store } from '../../ports/store.ts';

/** What a run counts its costs by. */
export interface CostRules {
  prices: Prices;
  /** Whether files are stored in S3, where each PUT costs. */
  storesInS3: boolean;
}

const NO_COST_RULES: CostRules = { prices: PRICES_DEFAULT, storesInS3: false };

interface WatchParts {
  store: {
    readonly jobs: Pick<Store['jobs'], 'costs' | 'addCosts'>;
    readonly keys: Pick<Store['keys'], 'byId' | 'tasksOut' | 'usage'>;
  };
  job: Job;
  clock: Clock;
  costs?: CostRules | undefined;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** Limits of a key are read again after so long. */
const KEY_MS = 2_000;

/** Prices what the run uses, and says how much of its budgets is left: those of the job, and those of a day of its key. */
export class BudgetWatch {
  readonly #parts: WatchParts;
  readonly #rules: CostRules;
  readonly #limits: Budget;
  #taskCosts = NO_TASK_COSTS;
  #keyLimits: { budget: Budget | null; until: number } = { budget: null, until: 0 };
  #machineMs = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    this.#rules = parts.costs ?? NO_COST_RULES;
    const { requests = null, dollars = null, browserSeconds = null } = parts.job.spec.limits;
    this.#limits = { requests, dollars, browserSeconds };
  }

  /** The lines that a report adds to the bill of the job, with what its transport cost. */
  billOf(report: Report, transport: Usage): CostLine[] {
    const usage = sumOfUsage(usageOfReport(report, this.#rules), transport);
    const lines = billOf(usage, this.#rules.prices);
    const tasks = report.outcomes.filter(({ kind }) => kind !== 'deferred').length;
    this.#taskCosts = addTaskCosts(this.#taskCosts, {
      tasks,
      dollars: totalOf(lines),
      browserSeconds: quantityOf(lines, 'browserSeconds'),
    });
    return lines;
  }

  /** What was spent on a batch that has no report. */
  async add(transport: Usage): Promise<void> {
    const lines = billOf(transport, this.#rules.prices);
    if (lines.length > 0) await this.#parts.store.jobs.addCosts(this.#parts.job.id, lines, this.#now());
  }

  /** Time of this machine is paid by the hour: what was worked since the last call. */
  async addMachineTime(workedMs: number): Promise<void> {
    const ms = workedMs - this.#machineMs;
    this.#machineMs = workedMs;
    if (this.#rules.prices.machineHour > 0 && ms > 0) await this.add({ machineHours: ms / HOUR_MS });
  }

  /** Null without any budget. */
  async tasksLeft({ requests, leased }: Pick<Counters, 'requests' | 'leased'>): Promise<number | null> {
    const ofKey = await this.#keyBudget();
    if (ofKey === null && !isLimited(this.#limits)) return null;
    const tasks = tasksWithin(this.#limits, await this.#spent(requests), leased, this.#taskCosts);
    if (ofKey === null) return tasks;
    const { store, job } = this.#parts;
    // Read before what was used: what is settled in between then counts twice, and not never.
    const out = ofKey.requests === null ? leased : await store.keys.tasksOut(job.owner!);
    const spent = await this.#spentByKey();
    return Math.min(tasks, tasksWithinKey(ofKey, spent, { ofJob: leased, ofKey: out }, this.#taskCosts));
  }

  /** Which budget is used up, in words; null while none is. */
  async exhausted({ requests }: Pick<Counters, 'requests'>): Promise<string | null> {
    const ofKey = await this.#keyBudget();
    const reason = ofKey && exhaustedOfKey(ofKey, await this.#spentByKey());
    if (reason !== null || !isLimited(this.#limits)) return reason;
    return exhausted(this.#limits, await this.#spent(requests));
  }

  /** Of a day; null where the job has no key, or its key no such limits. */
  async #keyBudget(): Promise<Budget | null> {
    const { store, job } = this.#parts;
    if (job.owner === null) return null;
    const now = this.#now();
    if (now >= this.#keyLimits.until) {
      const key = await store.keys.byId(job.owner);
      this.#keyLimits = { budget: key && dailyBudgetOf(key.limits), until: now + KEY_MS };
    }
    return this.#keyLimits.budget;
  }

  async #spentByKey(): Promise<Spent> {
    const { store, job } = this.#parts;
    const used = await store.keys.usage(job.owner!, Math.floor(this.#now() / DAY_MS));
    return { requests: used.requests, dollars: used.cost, browserSeconds: used.browserSeconds };
  }

  async #spent(requests: number): Promise<Spent> {
    const { dollars, browserSeconds } = this.#limits;
    if (dollars === null && browserSeconds === null) return { requests, dollars: 0, browserSeconds: 0 };
    const lines = await this.#parts.store.jobs.costs(this.#parts.job.id);
    return { requests, dollars: totalOf(lines), browserSeconds: quantityOf(lines, 'browserSeconds') };
  }

  #now(): number {
    return Math.floor(this.#parts.clock.now());
  }
}
