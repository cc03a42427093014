/** Answers that are short enough for a model to read: what is left is asked for with a cursor. */

/** Fields that are shorter are never cut. */
const SHORT_CHARS = 500;

interface Part {
  text: string;
  /** Where the rest begins; null at the end. */
  next: number | null;
}

export function partOfText(text: string, from: number, max: number): Part {
  let end = Math.min(text.length, from + max);
  // Not between the two halves of a character.
  if (end < text.length && end > from + 1 && /[\uD800-\uDBFF]/.test(text[end - 1]!)) end--;
  return { text: text.slice(from, end), next: end < text.length ? end : null };
}

type Row = Record<string, unknown>;

/** So many of the rows that they take at most `max` characters as JSON; at least one, cut where it is longer. */
export function fittingRows(rows: readonly Row[], max: number): Row[] {
  const [first] = rows;
  if (!first) return [];
  const fitting = [cutRow(first, max)];
  let used = JSON.stringify(fitting[0]).length;
  for (const row of rows.slice(1)) {
    used += JSON.stringify(row).length + 1;
    if (used > max) break;
    fitting.push(row);
  }
  return fitting;
}

/** The long fields share what the short ones leave. `cut` names them. */
function cutRow(row: Row, max: number): Row {
  if (JSON.stringify(row).length <= max) return row;
  const long = Object.keys(row).filter((name) => lengthOf(row[name]) > SHORT_CHARS);
  const short = Object.fromEntries(Object.entries(row).filter(([name]) => !long.includes(name)));
  const room = Math.max(0, max - JSON.stringify({ ...short, cut: long }).length) / long.length;
  const cut = Object.fromEntries(long.map((name) => [name, cutValue(row[name], room)]));
  return { ...short, ...cut, cut: long };
}

const lengthOf = (value: unknown) => JSON.stringify(value ?? null).length;

/** Quotes and escapes count as well: cut by the share that is too much. */
function cutValue(value: unknown, room: number): unknown {
  const share = Math.min(1, Math.max(0, room - 40) / lengthOf(value));
  if (typeof value === 'string') return cutText(value, room - 40);
  if (Array.isArray(value))
    return lengthOf(value.slice(0, value.length * share)) > room ? [] : value.slice(0, value.length * share);
  return null;
}

function cutText(text: string, room: number): string {
  let length = Math.min(text.length, Math.max(0, Math.floor(room)));
  while (length > 0 && lengthOf(text.slice(0, length)) > room) length = Math.floor(length * 0.9);
  return text.slice(0, length);
}
