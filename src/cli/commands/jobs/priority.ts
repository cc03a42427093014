import { setTimeout as delay } from 'node:timers/promises';
import { requireJob } from '../../../coordinator/jobs.ts';
import { changePriority } from '../../../coordinator/priority/task-priorities.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import { parsePriorityRule } from '../../../core/priority/priority.ts';
import { formatCount } from '../../../tui/format.ts';
import { type Command, print, printJson, withFolder } from '../../context.ts';

/** A coordinator looks at the store several times a second. */
const NOTICED_MS = 1_000;

export const priorityCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const [name, pattern, number] = context.parsed.args;
    if (name === undefined || pattern === undefined || number === undefined)
      throw new SeineError('a job, a pattern and a number are needed', {
        hint: "for example: seine priority shop '/product/*' 10",
      });
    const job = await requireJob(folder.store, name);
    const id = `${job.name}-${job.run}`;
    if (job.state === 'done' || job.state === 'cancelled')
      throw new SeineError(`${id} is already ${job.state}`);
    const rule = parsePriorityRule(pattern, number, job.spec);
    const alive = await folder.isAtWork(job.id);
    const changed = await changePriority(folder.store, job, rule, () => delay(alive ? NOTICED_MS : 0));
    if (context.json) printJson(context, { job: job.name, run: job.run, id, ...rule, changed, alive });
    else
      print(
        context.stdout,
        `${formatCount(changed)} waiting tasks of ${id} have priority ${rule.priority} now, and new ones will\n`,
      );
    return 'success';
  });
