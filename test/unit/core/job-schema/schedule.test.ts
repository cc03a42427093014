import { describe, expect, test } from 'vitest';
import { SeineError } from '../../../../src/core/errors.ts';
import { jobSchema } from '../../../../src/core/job-schema/job-schema.ts';
import { checkSchedule, nextRunAt } from '../../../../src/core/job-schema/schedule.ts';

const sources = 'https://a.example/';
const NOW = Date.UTC(2026, 0, 31, 12);
const scheduleOf = (cron: string, timeZone = 'UTC') => ({ cron, timeZone, refresh: false });

describe('a schedule', () => {
  test.each([
    ['0 3 * * *', 'UTC', Date.UTC(2026, 1, 1, 3)],
    ['0 3 * * *', 'Asia/Tokyo', Date.UTC(2026, 0, 31, 18)],
    // The first time after, and not this very moment.
    ['0 12 * * *', 'UTC', Date.UTC(2026, 1, 1, 12)],
    ['0 0 29 2 *', 'UTC', Date.UTC(2028, 1, 29)],
  ])('%s in %s comes when it says', (cron, timeZone, at) => {
    expect(nextRunAt(scheduleOf(cron, timeZone), NOW)).toBe(at);
    expect(() => checkSchedule(scheduleOf(cron, timeZone), NOW)).not.toThrow();
  });

  test('of a job may be a line, which means to visit known URLs again', () => {
    const parsed = (schedule: unknown) => jobSchema.parse({ sources, schedule }).schedule;
    expect(parsed('0 3 * * *')).toEqual({ cron: '0 3 * * *', refresh: true });
    expect(parsed({ cron: '0 3 * * *', timeZone: 'UTC', refresh: false })).toEqual({
      cron: '0 3 * * *',
      timeZone: 'UTC',
      refresh: false,
    });
  });

  test('that never matches is refused', () => {
    expect(nextRunAt(scheduleOf('0 0 30 2 *'), NOW)).toBeNull();
    expect(() => checkSchedule(scheduleOf('0 0 30 2 *'), NOW)).toThrow(
      new SeineError("the schedule '0 0 30 2 *' never matches"),
    );
  });

  test.each([
    ['at three', 'UTC'],
    ['99 3 * * *', 'UTC'],
    ['0 3 * * *', 'Europe/Atlantis'],
  ])('%s in %s is an error that says how to write it', (cron, timeZone) => {
    const read = () => checkSchedule(scheduleOf(cron, timeZone), NOW);
    expect(read).toThrow(SeineError);
    expect(read).toThrow(`invalid schedule '${cron}': `);
  });
});
