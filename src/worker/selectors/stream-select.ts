import { BITS_MAX, bitsOf, parseStreamSelector } from './compile.ts';
import type { StreamField, StreamValue } from './matches.ts';
import { StreamScan } from './scan.ts';

export type { StreamField as QuickField, StreamValue as QuickValue };
export { parseStreamSelector as parseQuick };

/** Reads all fields of a page; the values are in the order of the fields. */
export function compileStreamSelectors(fields: readonly StreamField[]): (html: string) => StreamValue[] {
  const passes: StreamField[][] = [];
  let bits = BITS_MAX;
  for (const field of fields) {
    bits += bitsOf(field.selector);
    if (bits > BITS_MAX || passes.length === 0) {
      passes.push([]);
      bits = bitsOf(field.selector);
    }
    passes.at(-1)!.push(field);
  }
  const scans = passes.map((pass) => new StreamScan(pass));
  if (scans.length === 1) return (html) => scans[0]!.run(html);
  return (html) => scans.flatMap((scan) => scan.run(html));
}
