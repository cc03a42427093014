import { type Behaviour, type HostileCase, pathOf } from './behaviour.ts';
import { CODINGS } from './codings.ts';
import { FRAMING } from './framing.ts';
import { HEADS } from './heads.ts';
import { MANNERS } from './manners.ts';
import { REDIRECTS } from './redirects.ts';
import { SOCKETS } from './sockets.ts';
import { TEXTS } from './texts.ts';
import { TRAPS } from './traps.ts';

/** All of them, by number. One table for the server, its index, `--list`, the tests and the docs. */
export const BEHAVIOURS: readonly Behaviour[] = [
  ...CODINGS,
  ...FRAMING,
  ...HEADS,
  ...SOCKETS,
  ...REDIRECTS,
  ...TEXTS,
  ...MANNERS,
  ...TRAPS,
].sort((a, b) => a.number - b.number);

export interface ListedCase extends HostileCase {
  behaviour: Behaviour;
  /** The whole path: `/31-redirects/self`. */
  base: string;
}

export const CASES: readonly ListedCase[] = BEHAVIOURS.flatMap((behaviour) =>
  behaviour.cases.map((each) => ({ ...each, behaviour, base: pathOf(behaviour) + each.path })),
);

/** The case that a path belongs to: the longest that it is below. */
export function caseOf(path: string): ListedCase | null {
  let best: ListedCase | null = null;
  for (const each of CASES) {
    const isBelow = path === each.base || path.startsWith(`${each.base}/`);
    if (isBelow && (best === null || each.base.length > best.base.length)) best = each;
  }
  return best;
}

/** The paths that a visitor of a case asks for. */
export function pathsOf({ base, times }: ListedCase): string[] {
  return times === undefined ? [base] : Array.from({ length: times }, (_, index) => `${base}/${index + 1}`);
}
