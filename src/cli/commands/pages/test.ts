import { SeineError } from '../../../core/errors.ts';
import { isJobFile } from '../../../job-file/load-job-file.ts';
import type { FieldChange, FieldFill } from '../../../reparse/record-diff.ts';
import type { ReparseResult } from '../../../reparse/reparse.ts';
import { formatCount, formatPercent } from '../../../tui/format.ts';
import { type Command, type Context, print, printable, printJson } from '../../context.ts';
import { toNumber } from '../run/job-from-flags.ts';
import { counted, fieldLines, reparseArchive } from './reparse.ts';

const FIELDS_SHOWN = 20;

/** Compares what today's code makes of stored pages with the stored records. */
export const testCommand: Command = async (context) => {
  const { values, args } = context.parsed;
  const limit = values.limit === undefined ? null : toNumber('--limit', values.limit);
  const ignored = values.ignore?.split(',').map((field) => field.trim()) ?? [];
  const { job, origin, result } = await reparseArchive(
    { ...context, parsed: { ...context.parsed, args: argsOf(args[0], values.against) } },
    { dryRun: true, limit },
  );
  if (result.pages === 0)
    throw new SeineError(`${job.name}-${job.run} has no stored pages to test with`, {
      hint: 'run the job once, and keep its folder for the test',
    });
  const differences = differencesOf(result, ignored);
  const id = `${job.name}-${job.run}`;
  if (context.json) printJson(context, { job: job.name, run: job.run, id, ...differences });
  else show(context, `${id}: ${counted(result.pages, 'page')} parsed with ${origin}`, differences);
  return differences.passed ? 'success' : 'failed-check';
};

/** As `reparse` takes them: which run, and by which file. */
function argsOf(first: string | undefined, against: string | undefined): string[] {
  if (against === undefined) return first === undefined ? [] : [first];
  return first !== undefined && isJobFile(first) ? [against, first] : [against];
}

interface FillChange {
  field: string;
  before: number;
  after: number;
}

interface Differences {
  passed: boolean;
  pages: number;
  failed: number;
  unreadable: number;
  records: ReparseResult['records'];
  /** Shares of records in which a field has a value, where they changed. */
  fills: FillChange[];
  fields: FieldChange[];
  troubles: ReparseResult['troubles'];
}

function differencesOf(result: ReparseResult, ignored: readonly string[]): Differences {
  const { pages, failed, unreadable, records, troubles } = result;
  const fields = result.fields.filter(({ field }) => !ignored.includes(field));
  const fills = fillChanges(result.fills, records).filter(({ field }) => !ignored.includes(field));
  const isSame = fields.length === 0 && fills.length === 0 && records.new + records.gone === 0;
  return {
    passed: isSame && failed + unreadable === 0,
    pages,
    failed,
    unreadable,
    records,
    fills,
    fields,
    troubles,
  };
}

function fillChanges(fills: readonly FieldFill[], records: ReparseResult['records']): FillChange[] {
  const { same, changed, new: added, gone } = records;
  const share = (count: number, of: number) => (of === 0 ? 0 : count / of);
  return fills
    .map(({ field, before, after }) => ({
      field,
      before: share(before, same + changed + gone),
      after: share(after, same + changed + added),
    }))
    .filter(({ before, after }) => before !== after);
}

function show(context: Context, title: string, differences: Differences): void {
  const { passed, records, fills, fields, failed, unreadable, troubles } = differences;
  const lines = [
    `${title}: ${passed ? 'nothing differs' : 'failed'}`,
    `  records: ${formatCount(records.same)} same, ${formatCount(records.changed)} changed, ${formatCount(records.new)} new, ${formatCount(records.gone)} gone`,
    ...fills.map(
      ({ field, before, after }) =>
        `  ${printable(field)}: filled in ${formatPercent(before)} of records before, ${formatPercent(after)} now`,
    ),
    ...fields.slice(0, FIELDS_SHOWN).flatMap(fieldLines),
    ...(fields.length > FIELDS_SHOWN ? [`  … ${fields.length} fields in total; --json shows all`] : []),
    ...(failed > 0 ? [`  ${counted(failed, 'page')} not parsed`] : []),
    ...(unreadable > 0 ? [`  ${counted(unreadable, 'page')} could not be read`] : []),
    ...troubles.map(({ url, code, detail }) => `    ${printable(`${url}: ${code}: ${detail}`)}`),
  ];
  print(context.stdout, `${lines.join('\n')}\n`);
}
