import type { JobSpec } from '../../core/job-schema/job.ts';
import type { EscalationRow, EscalationStore } from '../../ports/store/escalation-store.ts';
import type { ExploreMoney } from '../escalation/cheapest-levels.ts';
import { EXPLORE_MONEY } from '../escalation/escalation-policy.ts';
import type { HostScores } from '../escalation/host-scores.ts';

/** What a fetch method cost where methods are compared by cost. */
export interface MethodCostRow {
  /** Like `browser full via pool`: fetcher, headers, and the pool of proxies. */
  method: string;
  attempts: number;
  pages: number;
  /** Its share of machines included, at the prices of the settings; what has no price is taken to have a usual one. */
  dollars: number;
  /** Null when it brought none. */
  dollarsPerPage: number | null;
}

interface MethodCostReport {
  byHost: Map<string, MethodCostRow[]>;
  all: MethodCostRow[];
  /** Spent on attempts that were to find a cheaper method, and failed. */
  explored: number;
}

/** Rows that are read: as many as a run reads. */
const ROWS_MAX = 50_000;

/** Null unless the job compares fetch methods by their cost. */
export async function methodCostsOf(
  { escalations }: { escalations: Pick<EscalationStore, 'load'> },
  job: { id: number; spec: Pick<JobSpec, 'escalation'> },
): Promise<MethodCostReport | null> {
  if (job.spec.escalation?.choose !== 'cheapest') return null;
  return summed(await escalations.load(job.id, ROWS_MAX));
}

function summed(rows: readonly EscalationRow[]): MethodCostReport {
  const byHost = new Map<string, MethodCostRow[]>();
  const all = new Map<string, Omit<MethodCostRow, 'dollarsPerPage'>>();
  let explored = 0;
  for (const { host, template, stats } of rows) {
    if (template === EXPLORE_MONEY) explored = (stats as ExploreMoney).explored;
    if (template !== '') continue;
    const { scores } = stats as Pick<HostScores, 'scores'>;
    const ofHost = Object.entries(scores).flatMap(([method, { costs, tries }]) =>
      costs && costs.paid > 0 ? [{ method, attempts: tries, pages: costs.pages, dollars: costs.paid }] : [],
    );
    byHost.set(host, ofHost.map(priced).sort(byCost));
    for (const { method, attempts, pages, dollars } of ofHost) {
      const sum = all.get(method) ?? { method, attempts: 0, pages: 0, dollars: 0 };
      sum.attempts += attempts;
      sum.pages += pages;
      sum.dollars += dollars;
      all.set(method, sum);
    }
  }
  return { byHost, all: [...all.values()].map(priced).sort(byCost), explored };
}

function priced(row: Omit<MethodCostRow, 'dollarsPerPage'>): MethodCostRow {
  return { ...row, dollarsPerPage: row.pages === 0 ? null : row.dollars / row.pages };
}

/** Those that brought pages first, the cheapest of them before others. */
function byCost(a: MethodCostRow, b: MethodCostRow): number {
  return (a.dollarsPerPage ?? Number.MAX_VALUE) - (b.dollarsPerPage ?? Number.MAX_VALUE);
}
