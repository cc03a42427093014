import type { RecordChanges } from '../core/record-changes/record-changes.ts';
import { formatAmount, formatCount } from './format.ts';
import { cleanText } from './text.ts';

const FIELDS_SHOWN = 4;

/** `60 records changed (price 60), 3 new, 2 gone` */
export function changesText({ created, changed, gone, fields }: RecordChanges): string {
  const shown = fields
    .slice(0, FIELDS_SHOWN)
    .map(({ field, count }) => `${cleanText(field)} ${formatCount(count)}`);
  const more = fields.length - FIELDS_SHOWN;
  if (more > 0) shown.push(`${formatAmount(more, 'more field')}`);
  const names = shown.length > 0 ? ` (${shown.join(', ')})` : '';
  const parts = [
    ...(changed > 0 ? [`${formatAmount(changed, 'record')} changed${names}`] : []),
    ...(created > 0 ? [`${formatCount(created)} new`] : []),
    ...(gone > 0 ? [`${formatCount(gone)} gone`] : []),
  ];
  return parts.length > 0 ? parts.join(', ') : 'no record changed';
}
