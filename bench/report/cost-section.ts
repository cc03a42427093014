/** What a million pages cost, computed from the CPU that a page takes. Pure. */

import { billOf, PRICES_DEFAULT, totalOf, type Usage } from '../../src/core/cost/cost.ts';
import type { Verdict } from '../scenario.ts';

const PAGES = 1e6;
/** A machine with two cores: c6a.large in US East, on demand. What machines cost is 0 in the settings until it is set. */
const MACHINE = { cores: 2, hour: 0.0765, spotShare: 0.4 } as const;
/** The function that `seine lambda deploy` makes, on arm, and its share of a core. */
const FUNCTION = { gb: 1, cores: 1_024 / 1_769 } as const;
const BATCH_PAGES = 60;
/** Pages of the web: how long one takes, and how many of a batch are under way at a time. */
const WEB = { pageSeconds: 0.5, atOnce: 30 } as const;
/** Andrew Chan, 2025: the web with 12 machines, dollars for a million pages. */
const PUBLISHED = 0.46;
/** Most dollars for a million pages on spot machines. */
const SPOT_MAX = 0.3;
/** Assumed of pages of the web on a machine: CPU for TLS and larger pages, and the share of its time that it computes. */
const WEB_MACHINE = { cpuTimes: 2, busyShare: 1 / 3 } as const;

interface CostRow {
  where: string;
  paid: string;
  dollars: number;
}

export function costRows(cpuMicros: number): CostRow[] {
  const cpuSeconds = (cpuMicros / 1e6) * PAGES;
  const hours = cpuSeconds / MACHINE.cores / 3_600;
  const secondsText = (value: number) => `${whole(value * 3_600)} s of the machine`;
  const busy = secondsText(hours);
  const webHours = (hours * WEB_MACHINE.cpuTimes) / WEB_MACHINE.busyShare;
  const computing = (BATCH_PAGES * cpuMicros) / 1e6 / FUNCTION.cores;
  const waiting = (BATCH_PAGES * WEB.pageSeconds) / WEB.atOnce;
  return [
    { where: 'one machine of two cores, on demand', paid: busy, dollars: hours * MACHINE.hour },
    { where: 'the same, spot', paid: busy, dollars: hours * MACHINE.hour * MACHINE.spotShare },
    {
      where: 'spot, pages of the web: twice the CPU, and computing a third of the time',
      paid: secondsText(webHours),
      dollars: webHours * MACHINE.hour * MACHINE.spotShare,
    },
    onLambda('Lambda, pages that answer at once', computing),
    onLambda('Lambda, pages that take half a second, 30 at a time', Math.max(computing, waiting)),
    {
      where: 'published: the web (Andrew Chan, 2025)',
      paid: '12 machines for 25.5 hours',
      dollars: PUBLISHED,
    },
  ];
}

function onLambda(where: string, batchSeconds: number): CostRow {
  const calls = PAGES / BATCH_PAGES;
  const lambdaArmGbSeconds = calls * batchSeconds * FUNCTION.gb;
  const usage: Usage = { lambdaCalls: calls, lambdaArmGbSeconds, s3Puts: calls };
  const paid = `${whole(calls)} calls, ${whole(lambdaArmGbSeconds)} GB-seconds, ${whole(calls)} PUTs`;
  return { where, paid, dollars: totalOf(billOf(usage, PRICES_DEFAULT)) };
}

const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

/** By the row that assumes pages of the web. */
export function judgeCost(cpuMicros: number | undefined): Verdict {
  const bar = `a million pages of the web on spot machines ≤ $${SPOT_MAX.toFixed(2)} (published: $${PUBLISHED})`;
  if (cpuMicros === undefined || Number.isNaN(cpuMicros))
    return { bar, measured: 'not measured', passed: undefined };
  const { dollars } = costRows(cpuMicros)[2]!;
  return { bar, measured: `$${dollars.toFixed(4)}`, passed: dollars <= SPOT_MAX };
}

export function costSection(cpuMicros: number): string {
  const rows = costRows(cpuMicros).map(
    ({ where, paid, dollars }) => `| ${where} | ${paid} | ${dollars.toFixed(dollars < 0.1 ? 4 : 2)} |`,
  );
  return `### Cost of a million pages

| where | paid for | dollars |
|---|---|--:|
${rows.join('\n')}

- Computed from ${Math.round(cpuMicros)} µs of CPU a page, links only, start and coordinator included, and the prices of [the settings](cost.md).
- The machine has two cores for $${MACHINE.hour} an hour (c6a.large, US East), as a spot machine for ${MACHINE.spotShare * 100} % of that. In the first two rows it computes all the time: a lower limit. Pages over TLS take more CPU, and a machine that waits for hosts is paid as well: the third row assumes twice the CPU, and a machine that computes for a third of its time. The goal is $${SPOT_MAX.toFixed(2)} on spot machines.
- The function is what \`seine lambda deploy\` makes, on arm: 1 GB, which has 0.58 of a core. Batches have ${BATCH_PAGES} pages and write one WARC file each. The machine of the coordinator is not counted.
- Bandwidth, storage and proxies are not counted. The published figure is of larger pages, over TLS, from the whole web.`;
}
