import type { Element } from 'domhandler';

export interface List {
  isOrdered: boolean;
  number: number;
  marker: string;
  /** Something stands before the next item, so that no empty line is needed. */
  isBegun: boolean;
}

const NUMBER_MAX = 1_000_000;

/** `before` is the list that ended right here: two in a row with one marker would be one list. */
export function listOf({ name, attribs }: Element, before: List | null, isNested: boolean): List {
  const isOrdered = name === 'ol';
  const start = Number.parseInt(attribs.start ?? '1', 10);
  const [marker, other] = isOrdered ? (['.', ')'] as const) : (['-', '*'] as const);
  const isAgain = before?.isOrdered === isOrdered && before.marker === marker;
  return {
    isOrdered,
    number: start >= 0 && start < NUMBER_MAX ? start : 1,
    marker: isAgain ? other : marker,
    isBegun: isNested,
  };
}

/** What the next item begins with. */
export function nextMark(list: List | undefined): string {
  if (list === undefined) return '- ';
  return list.isOrdered ? `${list.number++}${list.marker} ` : `${list.marker} `;
}
