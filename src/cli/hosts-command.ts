import { type HostReportRow, hostReporter } from '../coordinator/host-report.ts';
import { requireJob } from '../coordinator/jobs.ts';
import type { ExitName } from '../core/errors.ts';
import { defaultUserAgent } from '../core/identity.ts';
import type { JobSpec } from '../core/job.ts';
import { productToken } from '../core/robots.ts';
import { formatCount } from '../tui/format.ts';
import { type Command, type Context, printable, printJson, withFolder } from './context.ts';

/** Hosts shown as text; `--json` and `export --what hosts` have them all. */
const SHOWN_MAX = 1_000;

export const hostsCommand: Command = (context) =>
  withFolder(context, async ({ store }): Promise<ExitName> => {
    const job = await requireJob(store, context.parsed.args[0] ?? null);
    const report = hostReporter(job.spec, productOf(job.spec));
    let count = 0;
    for await (const facts of store.hosts.list(job.id)) {
      const row = report(facts, Date.now());
      count++;
      if (context.json) printJson(context, row);
      else if (count <= SHOWN_MAX) write(context, row);
    }
    if (!context.json && count === 0) context.stdout.write('no hosts yet\n');
    if (!context.json && count > SHOWN_MAX)
      context.stdout.write(`… and ${formatCount(count - SHOWN_MAX)} more: --json shows all\n`);
    return 'success';
  });

export function productOf({ identity }: JobSpec): string {
  return productToken(identity.userAgent ?? defaultUserAgent(identity.contact));
}

function write(context: Context, row: HostReportRow): void {
  const rate = row.rate === null ? `${row.parallel} at once` : `${row.rate}/s`;
  const lines = [
    `${row.host.padEnd(32)} ${row.state.padEnd(8)} ${rate.padEnd(12)} ${formatCount(row.ready)} ready, ${formatCount(row.requests)} requests`,
    `  limited by ${row.limitedBy}`,
  ];
  if (row.lastError) lines.push(`  last error ${row.lastErrorAt}: ${row.lastError}`);
  for (const robots of row.robots) lines.push(`  robots.txt of ${robots.origin}: ${robotsText(robots)}`);
  if (row.smallestGapMs !== null)
    lines.push(`  smallest gap ${row.smallestGapMs} ms, permitted ${row.permittedGapMs} ms`);
  context.stdout.write(`${lines.map(printable).join('\n')}\n`);
}

function robotsText({
  rules,
  crawlDelayMs,
  optedOut,
  sha256,
  detail,
}: HostReportRow['robots'][number]): string {
  if (sha256 === null) return `not to be had (${detail ?? 'no answer'})`;
  if (optedOut) return 'forbids everything';
  const delay = crawlDelayMs === null ? '' : `, ${crawlDelayMs / 1_000} s between requests`;
  return `${rules} rules for us${delay}${detail ? `, ${detail}` : ''}`;
}
