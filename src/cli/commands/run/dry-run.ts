import { openFiles } from '../../../app/app.ts';
import { type SourceSample, sampleSources } from '../../../app/sample-sources.ts';
import type { Forecast } from '../../../core/forecast/forecast.ts';
import { type JobSpec, storesMedia } from '../../../core/job-schema/job.ts';
import { compileHostLimits } from '../../../core/politeness/host-limits.ts';
import { hideCredentials } from '../../../core/text/redact.ts';
import type { LoadedJob } from '../../../job-file/load-job-file.ts';
import { formatAmount, formatCount, formatDuration } from '../../../tui/format.ts';
import { forecastText } from '../../../tui/money.ts';
import { type Context, print, printable, printJson } from '../../context.ts';

const HOSTS_SHOWN = 5;

/** What a run would do, as far as it is known without a request. */
interface RunPlan {
  job: string;
  sources: { name: string; rows: number | null; isExact: boolean }[];
  /** Of all sources; null where one of them cannot be counted. */
  rows: number | null;
  /** Hosts with most rows first. */
  hosts: { host: string; rows: number; requestsPerSecond: number | null }[];
  /** No run can be shorter, whatever the machine: the rates of the hosts allow no more. Null without a rate. */
  shortestMs: number | null;
  /** Links are followed, so there is more to come than rows. */
  followsLinks: boolean;
  kept: { pages: string | null; media: string | null; state: string };
}

/** Says what a person wants to know before a run starts; `--json` has the whole job, too. */
export async function describeRun(
  context: Context,
  { spec }: LoadedJob,
  forecast: Forecast | null,
): Promise<void> {
  const plan = await planOf(context, spec);
  if (context.json) printJson(context, { ...plan, ...(forecast ? { forecast } : {}), spec });
  else print(context.stdout, `${textOf(plan)}${forecast ? `forecast, ${forecastText(forecast)}\n` : ''}`);
}

async function planOf(context: Context, spec: JobSpec): Promise<RunPlan> {
  const files = openFiles(context.settings, spec);
  try {
    const samples = await sampleSources(spec, files.of);
    const isKnown = samples.every(({ rows }) => rows !== null);
    return {
      job: spec.name,
      sources: samples.map(({ name, rows, isExact }) => ({ name, rows, isExact })),
      rows: isKnown ? samples.reduce((sum, { rows }) => sum + rows!, 0) : null,
      ...hostsOf(samples, spec),
      followsLinks: spec.follow.length > 0 || spec.routes.some(({ paginate }) => paginate !== undefined),
      kept: keptOf(context, spec),
    };
  } finally {
    await files.close();
  }
}

/** Rows that were not looked at are taken to be spread like the others. */
function hostsOf(samples: readonly SourceSample[], spec: JobSpec): Pick<RunPlan, 'hosts' | 'shortestMs'> {
  const limitsOf = compileHostLimits(spec);
  const counts = new Map<string, number>();
  for (const { rows, hosts } of samples) {
    const seen = [...hosts.values()].reduce((sum, count) => sum + count, 0);
    const factor = rows === null || seen === 0 ? 1 : Math.max(1, rows / seen);
    for (const [host, count] of hosts) counts.set(host, (counts.get(host) ?? 0) + count * factor);
  }
  const hosts = [...counts]
    .map(([host, rows]) => {
      const { rate } = limitsOf(host);
      return { host, rows: Math.round(rows), requestsPerSecond: Number.isFinite(rate) ? rate : null };
    })
    .sort((a, b) => b.rows - a.rows || (a.host < b.host ? -1 : 1));
  const { pages } = spec.limits;
  const times = hosts.map(({ rows, requestsPerSecond }) =>
    requestsPerSecond === null ? 0 : (Math.min(rows, pages ?? rows) * 1_000) / requestsPerSecond,
  );
  return { hosts, shortestMs: times.some((ms) => ms > 0) ? Math.max(...times) : null };
}

function keptOf({ settings }: Context, spec: JobSpec): RunPlan['kept'] {
  const blobs = hideCredentials(settings.blobs ?? settings.dir);
  return {
    pages: spec.archive ? `${blobs}/warc` : null,
    media: storesMedia(spec) ? `${blobs}/${spec.media.pack === 'webdataset' ? 'shards' : 'media'}` : null,
    state: settings.store ? 'PostgreSQL' : `${settings.dir}/seine.db`,
  };
}

function textOf(plan: RunPlan): string {
  const { job, sources, hosts, shortestMs, followsLinks, kept } = plan;
  const lines = [
    `${job} would read`,
    ...sources.map(({ name, rows, isExact }) => `  ${name}: ${rowsText(rows, isExact)}`),
    `from ${formatAmount(hosts.length, 'host')}${followsLinks ? ', and the links that they lead to' : ''}`,
    ...hosts.slice(0, HOSTS_SHOWN).map(({ host, rows, requestsPerSecond }) => {
      const rate = requestsPerSecond === null ? 'no rate limit' : `${requestsPerSecond} requests per second`;
      return `  ${host}: ${formatCount(rows)}, ${rate}`;
    }),
    ...(hosts.length > HOSTS_SHOWN
      ? [`  … and ${formatCount(hosts.length - HOSTS_SHOWN)} more; --json shows all`]
      : []),
    shortestMs === null
      ? 'the rates set no shortest time'
      : `it takes at least ${formatDuration(shortestMs)} under these rates${followsLinks ? ', and longer with links' : ''}`,
    `pages: ${kept.pages ?? 'not kept'}`,
    ...(kept.media === null ? [] : [`media: ${kept.media}`]),
    `records and state: ${kept.state}`,
    'nothing was fetched; --json shows the job with all defaults',
  ];
  return `${lines.map(printable).join('\n')}\n`;
}

function rowsText(rows: number | null, isExact: boolean): string {
  if (rows === null) return 'rows are counted when it is read';
  return `${isExact ? '' : 'about '}${formatAmount(rows, 'row')}`;
}
