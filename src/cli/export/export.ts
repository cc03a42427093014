import { AWS_ITSELF } from '../../aws/s3/s3-client.ts';
import { requireJob } from '../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../core/errors.ts';
import { suggestion } from '../../core/text/nearest-name.ts';
import type { Since } from '../../ports/store.ts';
import { formatCount } from '../../tui/format.ts';
import { type Command, type Context, print, withFolder } from '../context.ts';
import { isStandardOutput, openDestination } from './destination.ts';
import { exportDataset } from './export-dataset.ts';
import { exportWacz } from './export-wacz.ts';
import { FORMATS, type Format, formatOf, writeRows } from './formats.ts';
import { WHATS, type What } from './tables.ts';

/** Streams rows; memory stays flat whatever their number. */
export const exportCommand: Command = async (context) => {
  const { output } = context.parsed.values;
  if (context.parsed.values.what === 'dataset') return exportDataset(context);
  refuseDatasetOptions(context);
  if (context.parsed.values.what === 'wacz') return exportWacz(context);
  const what = whatOf(context);
  const format = formatFor(context);
  const since = sinceFor(context, what);
  const csvSafe = context.parsed.values['csv-safe'] === 'true';
  if (csvSafe && format !== 'csv') throw new SeineError('--csv-safe works with the format csv only');
  return withFolder(context, async (folder): Promise<ExitName> => {
    const [name] = context.parsed.args;
    const job = await requireJob(folder.store, name ?? null);
    const wholeName = name === undefined || name === job.name;
    const destination = await openDestination(output, context.stdout, context.settings.s3 ?? AWS_ITSELF);
    try {
      const selection = { store: folder.store, job, wholeName, ...since };
      const count = await writeRows(format, what, selection, destination, { csvSafe });
      await destination.finish();
      if (!isStandardOutput(output))
        print(context.stderr, `${formatCount(count)} ${count === 1 ? 'row' : 'rows'} written to ${output}\n`);
      return 'success';
    } catch (error) {
      await destination.abort();
      throw error;
    }
  });
};

const DATASET_OPTIONS = [
  'shard-size',
  'caption-column',
  'resize',
  'resize-mode',
  'encode',
  'quality',
] as const;

function refuseDatasetOptions({ parsed }: Context): void {
  const given = DATASET_OPTIONS.find((name) => parsed.values[name] !== undefined);
  if (given) throw new SeineError(`--${given} works with --what dataset only`);
}

function whatOf(context: Context): What {
  const { what = 'records' } = context.parsed.values;
  const known = WHATS.find((name) => name === what);
  if (known) return known;
  const all = [...WHATS, 'dataset', 'wacz'];
  throw new SeineError(`--what must be one of ${all.join(', ')}, got '${what}'${suggestion(what, all)}`);
}

function formatFor(context: Context): Format {
  const { format, output } = context.parsed.values;
  const known = format === undefined ? formatOf(output) : FORMATS.find((name) => name === format);
  if (!known)
    throw new SeineError(
      `--format must be one of ${FORMATS.join(', ')}, got '${format}'${suggestion(format ?? '', FORMATS)}`,
    );
  if (known !== 'parquet') return known;
  if (isStandardOutput(output) && context.stdout.isTTY)
    throw new SeineError('Parquet cannot be written to a terminal', {
      hint: 'use -o file.parquet, or a pipe',
    });
  if (output?.endsWith('.gz'))
    throw new SeineError('Parquet files are already compressed', { hint: 'use a file name without .gz' });
  return known;
}

function sinceFor(context: Context, what: What): Since {
  const { since } = context.parsed.values;
  if (since === undefined) return {};
  if (what === 'quality')
    throw new SeineError('--since does not work with --what quality, which has one row per pass');
  if (what === 'hosts')
    throw new SeineError(
      '--since does not work with --what hosts: a log is exported whole, or it cannot be checked',
    );
  return { since: parseSince(since, Date.now()) };
}

const UNITS_MS: Record<string, number> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

const DATE = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/;

/** `2026-01-31`, `2026-01-31T12:00:00Z`, or a length of time until now: `7d`, `12h`. Epoch milliseconds. */
export function parseSince(text: string, now: number): number {
  const [, count, unit] = /^(\d{1,9})([smhdw])$/.exec(text) ?? [];
  if (count !== undefined) return now - Number(count) * UNITS_MS[unit!]!;
  const at = DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw new SeineError(`--since needs a date or a duration, got '${text}'`, {
    hint: 'for example 2026-01-31, 2026-01-31T12:00:00Z, 7d, 12h or 30m',
  });
}
