const BOOL = 16;
const BYTEA = 17;
/** smallint, integer, bigint, oid, real, double precision, numeric: all that we count fits a number. */
const NUMBERS = new Set([20, 21, 23, 26, 700, 701, 1700]);

const asIs = (text: string) => text;
const asBoolean = (text: string) => text === 't';
/** `\x` and hexadecimal digits, of which only the digits are wanted. */
const asHex = (text: string) => text.slice(2);

/** JSON stays text: whoever wants it parses it. So do times, as everywhere in our tables. */
export function readerOf(type: number): (text: string) => unknown {
  if (NUMBERS.has(type)) return Number;
  if (type === BOOL) return asBoolean;
  return type === BYTEA ? asHex : asIs;
}
