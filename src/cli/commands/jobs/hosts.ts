import { requireJob, summarize } from '../../../coordinator/jobs.ts';
import { calibrationOf, type HostReportRow, hostReporter } from '../../../coordinator/reports/host-report.ts';
import { hostLatencies } from '../../../coordinator/reports/latencies.ts';
import { type MethodCostRow, methodCostsOf } from '../../../coordinator/reports/method-costs.ts';
import { restingByHost } from '../../../coordinator/reports/proxy-report.ts';
import { hostQuietHours } from '../../../coordinator/reports/quiet-hours.ts';
import type { ExitName } from '../../../core/errors.ts';
import { defaultUserAgent } from '../../../core/identity/identity.ts';
import type { JobSpec } from '../../../core/job-schema/job.ts';
import type { HourFigures, QuietHours } from '../../../core/quiet-hours/quiet-hours.ts';
import { productToken } from '../../../core/robots/robots.ts';
import type { Quantiles } from '../../../core/rollups/histogram.ts';
import type { Store } from '../../../ports/store.ts';
import { formatCount, formatQuantiles } from '../../../tui/format.ts';
import { methodText } from '../../../tui/money.ts';
import { type Command, type Context, print, printable, printJson, withFolder } from '../../context.ts';
import { readProxies } from './proxies.ts';

/** Hosts shown as text; `--json` and `export --what hosts` have them all. */
const SHOWN_MAX = 1_000;
const PROXIES_SHOWN = 5;
const ADDRESSES_SHOWN = 10;

export const hostsCommand: Command = (context) =>
  withFolder(context, async ({ store, isAtWork }): Promise<ExitName> => {
    const name = context.parsed.args[0] ?? null;
    if (name === null && (await store.jobs.find(null)) === null && (await writeProfiles(context, store)))
      return 'success';
    const job = await requireJob(store, name);
    // What stops the whole job stops every host, and none of them says so.
    const { state, reason } = await summarize(store, job, { alive: await isAtWork(job.id) });
    if (!context.json && reason)
      print(context.stdout, `${printable(`${job.name}-${job.run} is ${state}: ${reason}`)}\n`);
    const report = hostReporter(job.spec, productOf(job.spec), reason);
    const resting = job.spec.proxies ? restingByHost(await readProxies(store)) : new Map();
    const latencies = await hostLatencies(store, job.id);
    const quiet = await hostQuietHours(store, job.id, Date.now());
    const methods = await methodCostsOf(store, job);
    let count = 0;
    for await (const facts of store.hosts.list(job.id)) {
      const row = {
        ...report(facts, Date.now()),
        latency: latencies.get(facts.host) ?? null,
        quietHours: quiet.get(facts.host) ?? null,
        ...(methods ? { methods: methods.byHost.get(facts.host) ?? [] } : {}),
      };
      const restingProxies: Resting[] = resting.get(row.host) ?? [];
      count++;
      if (context.json) printJson(context, restingProxies.length > 0 ? { ...row, restingProxies } : row);
      else if (count <= SHOWN_MAX) write(context, row, restingProxies);
    }
    if (!context.json && count === 0) print(context.stdout, 'no hosts yet\n');
    if (!context.json && count > SHOWN_MAX)
      print(context.stdout, `… and ${formatCount(count - SHOWN_MAX)} more: --json shows all\n`);
    return 'success';
  });

/** What is known of hosts before there is a job; false when that is nothing. */
async function writeProfiles(context: Context, store: Store): Promise<boolean> {
  const profiles = await store.hosts.profiles(SHOWN_MAX);
  for (const profile of profiles) {
    const { host } = profile;
    const calibration = calibrationOf(profile, Date.now());
    if (context.json) printJson(context, { host, calibration });
    else print(context.stdout, `${printable(host)}\n  calibration: ${calibrationText(calibration)}\n`);
  }
  return profiles.length > 0;
}

export function productOf({ identity }: JobSpec): string {
  return productToken(identity.userAgent ?? defaultUserAgent(identity.contact));
}

interface Resting {
  proxy: string;
  until: string;
}

function write(
  context: Context,
  row: HostReportRow & {
    latency: Quantiles | null;
    quietHours: QuietHours | null;
    methods?: MethodCostRow[];
  },
  resting: readonly Resting[],
): void {
  const rate = row.rate === null ? `${row.parallel} parallel` : `${row.rate}/s`;
  const lines = [
    `${row.host.padEnd(32)} ${row.state.padEnd(8)} ${rate.padEnd(12)} ${formatCount(row.ready)} ready, ${row.waitingTasks > 0 ? `${formatCount(row.waitingTasks)} waiting, ` : ''}${formatCount(row.requests)} requests`,
    `  limit: ${row.limitedBy}`,
  ];
  for (const { address, rate, refusedRate } of (row.addresses ?? []).slice(0, ADDRESSES_SHOWN))
    lines.push(`  address ${address}: ${rate}/s${refusedRate === null ? '' : `, refused ${refusedRate}/s`}`);
  if ((row.addresses?.length ?? 0) > ADDRESSES_SHOWN)
    lines.push(
      `  … and ${formatCount(row.addresses!.length - ADDRESSES_SHOWN)} more addresses: --json shows all`,
    );
  if (row.latency) lines.push(`  answers took ${formatQuantiles(row.latency)}`);
  if (row.quietHours) lines.push(`  ${quietText(row.quietHours)}`);
  for (const method of row.methods ?? []) lines.push(`  fetched by ${methodText(method)}`);
  if (row.calibration) lines.push(`  calibration: ${calibrationText(row.calibration)}`);
  if (row.lastError) lines.push(`  last error ${row.lastErrorAt}: ${row.lastError}`);
  for (const { proxy, until } of resting.slice(0, PROXIES_SHOWN))
    lines.push(`  proxy ${proxy} paused for this host until ${until}`);
  if (resting.length > PROXIES_SHOWN)
    lines.push(`  … and ${formatCount(resting.length - PROXIES_SHOWN)} more proxies: see \`seine proxies\``);
  for (const robots of row.robots) lines.push(`  robots.txt of ${robots.origin}: ${robotsText(robots)}`);
  if (row.smallestGapMs !== null)
    lines.push(
      `  smallest gap so far ${row.smallestGapMs} ms; now at least ${row.permittedGapMs} ms is kept`,
    );
  print(context.stdout, `${lines.map(printable).join('\n')}\n`);
}

/** The last part can be copied into the job, below `politeness.hosts`. */
function quietText({ window, inside, outside, days }: QuietHours): string {
  const { from, to, timeZone } = window;
  const text = ({ refusedShare, medianMs }: HourFigures) =>
    `${Number((refusedShare * 100).toFixed(1))} % refused${medianMs === null ? '' : `, ${medianMs} ms`}`;
  return `quieter from ${from} to ${to} ${timeZone}: ${text(inside)}; otherwise ${text(outside)} (${days} days). As a rule: window: {from: '${from}', to: '${to}'}`;
}

function calibrationText({
  rate,
  parallel,
  batchSize,
  measuredAt,
  expiresAt,
  expired,
}: NonNullable<HostReportRow['calibration']>): string {
  const found = rate === null ? 'no rate held' : `${rate}/s, ${parallel} parallel, batch size ${batchSize}`;
  return `${found}; measured ${measuredAt}, ${expired ? 'expired' : 'used until'} ${expiresAt}`;
}

function robotsText({
  rules,
  crawlDelayMs,
  optedOut,
  sha256,
  detail,
}: HostReportRow['robots'][number]): string {
  if (sha256 === null) return `not available (${detail ?? 'no answer'})`;
  if (optedOut) return 'disallows everything';
  const delay = crawlDelayMs === null ? '' : `, ${crawlDelayMs / 1_000} s between requests`;
  return `${rules} rules for this crawler${delay}${detail ? `, ${detail}` : ''}`;
}
