import type { Quantiles } from '../core/rollups/histogram.ts';

/** Numbers for people. Every part of Seine that prints one uses these. */

/** `1,234,567`; without `Intl`, whose first use takes 20 ms of every start. */
export function formatCount(count: number): string {
  return Math.round(count)
    .toFixed()
    .replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `1 record`, `2,000 records` */
export function formatAmount(count: number, one: string, several = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : several}`;
}

/** Two digits that matter: `12.30 USD`, `0.042 USD`, `0.0000017 USD`; what costs nothing is `0 USD`. */
export function formatUsd(usd: number): string {
  if (usd <= 0) return '0 USD';
  if (usd >= 0.095) return `${usd.toFixed(2)} USD`;
  const digits = Math.min(20, 1 - Math.floor(Math.log10(Number(usd.toPrecision(2)))));
  return `${usd.toFixed(digits)} USD`;
}

/** At most five characters where space is short: `9,999`, `12.3k`, `4.56M`. */
export function formatCountShort(count: number): string {
  if (Math.abs(count) < 9_999.5) return formatCount(count);
  return scaled(count, 1_000, ['', 'k', 'M', 'G', 'T']);
}

/** `0 B`, `999 B`, `1.50 kB`, `12.4 MB` */
export function formatBytes(bytes: number): string {
  return scaled(bytes, 1_000, [' B', ' kB', ' MB', ' GB', ' TB', ' PB']);
}

/** Three digits, and the unit that makes them fit. */
function scaled(value: number, base: number, units: readonly string[]): string {
  let unit = 0;
  let left = value;
  while (Math.abs(left) >= base - 0.5 && unit < units.length - 1) {
    left /= base;
    unit++;
  }
  const digits = unit === 0 || Math.abs(left) >= 99.95 ? 0 : Math.abs(left) >= 9.995 ? 1 : 2;
  return `${left.toFixed(digits)}${units[unit]}`;
}

/** `0 ms`, `850 ms`, `4.2 s`, `42 s`, `3m 07s`, `2h 05m`, `3d 04h` */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${Math.round(Math.max(0, ms))} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const two = (value: number) => String(value).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${two(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}h ${two(minutes % 60)}m`;
  return `${Math.floor(hours / 24)}d ${two(hours % 24)}h`;
}

/** Of something per second: `0`, `0.25`, `4.2`, `48.3`, `1,204` */
export function formatRate(perSecond: number): string {
  if (perSecond < 0.005) return '0';
  if (perSecond < 0.995) return perSecond.toFixed(2);
  return perSecond < 99.95 ? perSecond.toFixed(1) : formatCount(perSecond);
}

/** Never `100 %` before the end, nor `0 %` after the start. */
export function formatPercent(fraction: number): string {
  if (fraction <= 0) return '0 %';
  if (fraction >= 1) return '100 %';
  return `${Math.min(99, Math.max(1, Math.round(fraction * 100)))} %`;
}

/** What a limit kept out, and how to change that. */
export function droppedText(count: number): string {
  return `${formatAmount(count, 'link')} dropped by limits.perTemplate: raise it, or set it to null`;
}

/** `p50 81 ms, p95 240 ms, p99 1.2 s` */
export function formatQuantiles({ p50, p95, p99 }: Quantiles): string {
  const parts = Object.entries({ p50, p95, p99 }).filter(
    (part): part is [string, number] => part[1] !== null,
  );
  return parts.map(([name, ms]) => `${name} ${formatDuration(ms)}`).join(', ');
}
