import type { FieldInput } from '../../../core/job-schema/job.ts';
import type { Proposal } from '../../../reparse/learn-fields.ts';
import { formatPercent } from '../../../tui/format.ts';
import { printable } from '../../context.ts';
import { counted } from './reparse.ts';

const VALUE_SHOWN = 40;

/** A row for the best way to read a field, its evidence, and the next ways. */
export function proposalLines(field: string, proposals: readonly Proposal[]): string[] {
  const [best, ...others] = proposals;
  if (!best) return [`  ${printable(field)}: nothing fits`];
  return [
    `  ${printable(field)}: ${fieldText(best.field)}`,
    `    ${evidenceOf(best)}`,
    `    ${best.samples.map(({ value }) => shortened(value)).join(', ')}`,
    ...others.map((other) => `    or ${fieldText(other.field)}: ${evidenceOf(other)}`),
  ];
}

function evidenceOf({ known, right, pages, filled, different, isFromModel }: Proposal): string {
  return [
    ...(known > 0 ? [`${right} of ${known} known values`] : []),
    `filled on ${formatPercent(pages === 0 ? 0 : filled / pages)} of ${counted(pages, 'page')}`,
    `${different} different`,
    ...(isFromModel ? ['proposed by the model'] : []),
  ].join(', ');
}

export function fieldText(field: FieldInput): string {
  return printable(JSON.stringify(field));
}

function shortened(value: unknown): string {
  const text = printable(JSON.stringify(value) ?? '');
  return text.length > VALUE_SHOWN ? `${text.slice(0, VALUE_SHOWN - 1)}…` : text;
}
