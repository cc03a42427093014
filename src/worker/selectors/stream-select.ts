import { BITS_MAX, bitsOf, parseQuick } from './compile.ts';
import type { QuickField, QuickValue } from './matches.ts';
import { QuickScan } from './scan.ts';

export type { QuickField, QuickValue };
export { parseQuick };

/** Reads all fields of a page; the values are in the order of the fields. */
export function compileQuick(fields: readonly QuickField[]): (html: string) => QuickValue[] {
  const passes: QuickField[][] = [];
  let bits = BITS_MAX;
  for (const field of fields) {
    bits += bitsOf(field.selector);
    if (bits > BITS_MAX || passes.length === 0) {
      passes.push([]);
      bits = bitsOf(field.selector);
    }
    passes.at(-1)!.push(field);
  }
  const scans = passes.map((pass) => new QuickScan(pass));
  if (scans.length === 1) return (html) => scans[0]!.run(html);
  return (html) => scans.flatMap((scan) => scan.run(html));
}
