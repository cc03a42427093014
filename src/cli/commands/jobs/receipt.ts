import { requireJob } from '../../../coordinator/jobs.ts';
import { receiptOf } from '../../../coordinator/reports/receipt.ts';
import type { ExitName } from '../../../core/errors.ts';
import { receiptText } from '../../../tui/money.ts';
import { type Command, print, printJson, withFolder } from '../../context.ts';

export const receiptCommand: Command = (context) =>
  withFolder(context, async ({ store }): Promise<ExitName> => {
    const receipt = await receiptOf(store, await requireJob(store, context.parsed.args[0] ?? null));
    if (context.json) printJson(context, receipt);
    else print(context.stdout, `${receiptText(receipt)}\n`);
    return 'success';
  });
