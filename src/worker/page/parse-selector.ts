import { parse, type Selector, SelectorType, type TagSelector } from 'css-what';

/** Alternatives of one selector of a comma list, itself included: each `tbody` in it may add two. */
const ALTERNATIVES_MAX = 8;

/**
 * CSS as written for a browser's tree, for one that has the elements of the source alone. A browser puts rows that stand
 * right in a table into a `tbody`, and "copy selector" of its developer tools says so; here `tbody > tr` also means
 * `table > tr`. Which the page has is left to the page: `table > tr` finds such rows as before. Throws when it is no CSS.
 */
export function parseSelector(css: string): Selector[][] {
  const selectors = parse(css);
  return /tbody/i.test(css) ? selectors.flatMap(withImpliedTbody) : selectors;
}

function withImpliedTbody(selector: Selector[]): Selector[][] {
  const found: Selector[][] = [selector];
  for (const tokens of found) {
    for (let at = 0; at < tokens.length; at++) {
      if (!isBareTbody(tokens, at)) continue;
      for (const other of withoutTbody(tokens, at)) {
        if (found.length < ALTERNATIVES_MAX) found.push(other);
      }
    }
  }
  return found;
}

/** A `tbody` with no class or position of its own, and something inside it. */
function isBareTbody(tokens: Selector[], at: number): boolean {
  const token = tokens[at]!;
  return (
    token.type === SelectorType.Tag &&
    token.namespace === null &&
    token.name.toLowerCase() === 'tbody' &&
    (at === 0 || isStep(tokens[at - 1])) &&
    isStep(tokens[at + 1])
  );
}

function isStep(token: Selector | undefined): boolean {
  return token?.type === SelectorType.Child || token?.type === SelectorType.Descendant;
}

function withoutTbody(tokens: Selector[], at: number): Selector[][] {
  const rows = rowsInside(tokens.slice(at + 2), tokens[at + 1]!.type === SelectorType.Child);
  return tablesAround(tokens.slice(0, at)).flatMap((table) =>
    rows.map((row) => [...table, { type: SelectorType.Child } as const, ...row]),
  );
}

/** What stands before `tbody`, ending in the table. */
function tablesAround(before: Selector[]): Selector[][] {
  const table: Selector[] = [tag('table')];
  if (before.length === 0) return [table];
  const step = before.at(-1)!;
  const own = named(before.slice(0, -1), 'table');
  const found = own === null ? [] : [own];
  return step.type === SelectorType.Child ? found : [...found, [...before, ...table]];
}

/** What stands after `tbody`, beginning with the row. */
function rowsInside(after: Selector[], isChild: boolean): Selector[][] {
  const stepAt = after.findIndex(isStep);
  const end = stepAt === -1 ? after.length : stepAt;
  const own = named(after.slice(0, end), 'tr');
  const found = own === null ? [] : [[...own, ...after.slice(end)]];
  const isRow = after.some((token, index) => index < end && isTag(token, 'tr'));
  return isChild || isRow
    ? found
    : [...found, [tag('tr'), { type: SelectorType.Descendant } as const, ...after]];
}

/** The last compound of a selector as an element of that name; null when it is one of another name. */
function named(tokens: Selector[], name: string): Selector[] | null {
  const start = tokens.findLastIndex(isStep) + 1;
  const compound = tokens.slice(start);
  if (compound.some((token) => token.type === SelectorType.Tag && !isTag(token, name))) return null;
  if (compound.some((token) => isTag(token, name))) return tokens;
  return [
    ...tokens.slice(0, start),
    tag(name),
    ...compound.filter(({ type }) => type !== SelectorType.Universal),
  ];
}

function isTag(token: Selector, name: string): boolean {
  return token.type === SelectorType.Tag && token.namespace === null && token.name.toLowerCase() === name;
}

function tag(name: string): TagSelector {
  return { type: SelectorType.Tag, name, namespace: null };
}
