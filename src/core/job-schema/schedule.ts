import { Cron } from 'croner';
import { messageOf, SeineError } from '../errors.ts';
import type { JobSpec } from './job.ts';

type Schedule = NonNullable<JobSpec['schedule']>;

/** Epoch milliseconds of the first time after `after`; null when there is none. */
export function nextRunAt(schedule: Schedule, after: number): number | null {
  return cronOf(schedule).nextRun(new Date(after))?.getTime() ?? null;
}

/** Throws a SeineError when the expression or the time zone is wrong, or never comes. */
export function checkSchedule(schedule: Schedule, now: number): void {
  if (nextRunAt(schedule, now) === null)
    throw new SeineError(`the schedule '${schedule.cron}' never matches`);
}

function cronOf({ cron, timeZone }: Schedule): Cron {
  try {
    const parsed = new Cron(cron, {
      paused: true,
      ...(timeZone === undefined ? {} : { timezone: timeZone }),
    });
    parsed.nextRun(new Date(0));
    return parsed;
  } catch (error) {
    const reason = /space separated parts/.test(messageOf(error))
      ? 'it needs five, six or seven parts with spaces between'
      : messageOf(error).replace(/^CronPattern: /, '');
    throw new SeineError(`invalid schedule '${cron}': ${reason}`, {
      written: cron,
      hint: "use a cron expression such as '0 3 * * *' (every day at 3:00) and a time zone such as Europe/Paris",
      cause: error,
    });
  }
}
