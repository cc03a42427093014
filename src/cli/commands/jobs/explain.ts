import { explainJob } from '../../../coordinator/explain/explain-job.ts';
import { requireJob } from '../../../coordinator/jobs.ts';
import type { ExitName } from '../../../core/errors.ts';
import { type Gain, NAMES } from '../../../core/explain/explain.ts';
import { decisionText } from '../../../core/explain/scaling-decision.ts';
import type { SlotState } from '../../../core/explain/slot-states.ts';
import { wantedText } from '../../../core/scaling/scaling.ts';
import { formatDuration } from '../../../tui/format.ts';
import { type Command, print, printable, printJson, withFolder } from '../../context.ts';

export const explainCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    const changes = context.parsed.lists['what-if'] ?? [];
    const isAlive = job.state === 'running' && (await folder.isAtWork(job.id));
    const explanation = await explainJob(folder.store, job, { changes, isAlive });
    if (context.json) printJson(context, explanation);
    else print(context.stdout, `${linesOf(explanation).join('\n')}\n`);
    return 'success';
  });

function linesOf({ sentence, shares, gains, wanted, decisions }: Explained): string[] {
  const parts = (Object.entries(shares) as [SlotState, number][]).sort(([, a], [, b]) => b - a);
  return [
    sentence,
    ...parts.map(([state, percent]) => `${percent.toFixed(1).padStart(7)} %  ${NAMES[state]}`),
    ...gains.map((gain) => `  ${gain.change}: ${gainText(gain)}`),
    ...(wanted === null ? [] : [`  wanted: ${wantedText(wanted)}`]),
    ...decisions.map((decision) => printable(`  ${decisionText(decision)}`)),
  ];
}

type Explained = Awaited<ReturnType<typeof explainJob>>;

function gainText({ gainPercent, etaSeconds }: Gain): string {
  const rate = `${gainPercent < 0 ? '' : '+'}${gainPercent} % pages/s`;
  return etaSeconds === null || etaSeconds === 0
    ? rate
    : `${rate}, done in ${formatDuration(etaSeconds * 1_000)}`;
}
