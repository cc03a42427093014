import { type ProxyReportRow, reportProxies } from '../../../coordinator/reports/proxy-report.ts';
import type { ExitName } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Store } from '../../../ports/store.ts';
import { formatCount } from '../../../tui/format.ts';
import { type Command, print, printable, printJson, withFolder } from '../../context.ts';

/** Hosts shown of each proxy; `--json` has them all. */
const HOSTS_SHOWN = 10;

export const proxiesCommand: Command = (context) =>
  withFolder(context, async ({ store }): Promise<ExitName> => {
    const rows = await readProxies(store);
    for (const row of rows) {
      if (context.json) printJson(context, row);
      else print(context.stdout, `${linesOf(row).map(printable).join('\n')}\n`);
    }
    if (!context.json && rows.length === 0) print(context.stdout, 'no proxies used yet\n');
    return 'success';
  });

export async function readProxies(store: Store): Promise<ProxyReportRow[]> {
  return reportProxies(await store.proxies.load(0, LIMITS.proxyHostsMax), Date.now());
}

function linesOf({ proxy, state, until, score, failuresInRow, hosts }: ProxyReportRow): string[] {
  const about = [
    `score ${Math.round(score * 100)} %`,
    ...(failuresInRow > 0 ? [`${formatCount(failuresInRow)} failures in a row`] : []),
  ];
  return [
    `${proxy.padEnd(36)} ${state.padEnd(10)}${until === null ? '' : ` until ${until}`} ${about.join(', ')}`,
    ...hosts.slice(0, HOSTS_SHOWN).map((each) => `  paused for ${each.host} until ${each.until}`),
    ...(hosts.length > HOSTS_SHOWN
      ? [`  … and for ${formatCount(hosts.length - HOSTS_SHOWN)} more hosts: --json shows all`]
      : []),
  ];
}
