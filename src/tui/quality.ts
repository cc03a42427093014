import type { QualityDrop, RouteQuality } from '../coordinator/reports/run-view.ts';
import { formatAmount, formatPercent } from './format.ts';
import { cleanText, type Line } from './text.ts';

const ROUTES_SHOWN = 10;
const FIELDS_SHOWN = 4;
const DROPS_SHOWN = 6;

/**
 * What records are worth, by route: the score, the fields that are missing most, and what got worse. `earlierPass` is
 * said when the figures are not those of the present pass.
 */
export function qualityLines(quality: readonly RouteQuality[], earlierPass: number | null = null): Line[] {
  if (quality.length === 0) return [];
  const more = quality.length - ROUTES_SHOWN;
  return [
    ...quality.slice(0, ROUTES_SHOWN).flatMap(routeLines),
    ...(more > 0 ? [[[`  … and ${more} more routes`, 'faint']] satisfies Line] : []),
    ...(earlierPass === null
      ? []
      : [[[`             from pass ${earlierPass}; no new records since`, 'faint']] satisfies Line]),
  ];
}

function routeLines({ route, score, records, invalid, fields, drops }: RouteQuality): Line[] {
  const facts = [
    formatAmount(records, 'record'),
    ...(invalid > 0 ? [`${formatAmount(invalid, 'page')} failed validation`] : []),
    ...missingMost(fields),
  ];
  return [
    [
      ['  quality    ', 'faint'],
      [`${cleanText(route)} `],
      [String(score), drops.length > 0 ? 'warn' : 'plain'],
      [` of 100   ${facts.join(' · ')}`, 'faint'],
    ],
    ...drops.slice(0, DROPS_SHOWN).map(dropLine),
    ...(drops.length > DROPS_SHOWN
      ? [[[`             … and ${drops.length - DROPS_SHOWN} more fields dropped`, 'warn']] satisfies Line]
      : []),
  ];
}

function missingMost(fields: RouteQuality['fields']): string[] {
  return Object.entries(fields)
    .filter(([, rate]) => rate < 1)
    .sort(([, a], [, b]) => a - b)
    .slice(0, FIELDS_SHOWN)
    .map(([field, rate]) => `${cleanText(field)} ${formatPercent(rate)}`);
}

function dropLine({ field, before, now }: QualityDrop): Line {
  const name = field === null ? 'valid pages' : cleanText(field);
  return [[`             ${name} dropped from ${formatPercent(before)} to ${formatPercent(now)}`, 'warn']];
}
