import { requireJob } from '../../../coordinator/jobs.ts';
import { writeContactSheet } from '../../../coordinator/reports/contact-sheet.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import { formatCount } from '../../../tui/format.ts';
import { type Command, print, printJson, withFolder } from '../../context.ts';

export const sheetCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    const sheet = await writeContactSheet(folder, job);
    if (!sheet)
      throw new SeineError(`${job.name}-${job.run} has no screenshots`, {
        hint: 'run it with --screenshot, or set `browser: { screenshot: true }` in a route',
      });
    if (context.json) printJson(context, sheet);
    else print(context.stdout, `${formatCount(sheet.tiles)} pages: ${sheet.place}\n`);
    return 'success';
  });
