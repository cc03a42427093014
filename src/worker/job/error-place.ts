import { SourceMap } from 'node:module';
import { messageOf } from '../../core/errors.ts';

/** Of a frame of a stack: a stored bundle, or a file. */
const FRAME =
  /(?:\(|at |async )(data:text\/javascript;base64,[A-Za-z0-9+/=]+|file:\/\/[^\s)]+?|\/[^\s():]+?):(\d+):(\d+)\)?$/;
const MAP = /\n\/\/# sourceMappingURL=data:application\/json;base64,([A-Za-z0-9+/=]+)\s*$/;
/** A stack of frames with whole bundles in their names is long; the one that is looked for is among the first. */
const FRAMES_MAX = 10;

const OWN_FOLDER = new URL('../../', import.meta.url);

/** More frames than these say little. */
const FRAMES_SHOWN = 3;

/**
 * Where in the code of the job an error was thrown, and from where that was called, the innermost first: `shop.ts:12`.
 * Only files that the user wrote.
 */
export function placesOfError(error: unknown): string[] {
  const stack = error instanceof Error ? error.stack : undefined;
  if (typeof stack !== 'string') return [];
  const places: string[] = [];
  for (const line of stack.split('\n').slice(0, FRAMES_MAX)) {
    const [, file, row, column] = FRAME.exec(line) ?? [];
    if (!file || !row || !column) continue;
    const place = file.startsWith('data:')
      ? placeInBundle(file, Number(row), Number(column))
      : `${file}:${row}`;
    // Two calls in one line are one place.
    if (place === null || isOthers(place) || place === places.at(-1)) continue;
    if (places.push(place) === FRAMES_SHOWN) break;
  }
  return places;
}

/** So much of a message leaves room for the places after it. */
const MESSAGE_MAX = 300;

/** The message of an error in the code of a job, and where it was thrown. */
export function describeCodeError(error: unknown): string {
  const [first, ...callers] = placesOfError(error);
  if (first === undefined) return messageOf(error);
  const called = callers.length === 0 ? '' : `, called from ${callers.join(', ')}`;
  return `${messageOf(error).slice(0, MESSAGE_MAX)} (${first}${called})`;
}

function isOthers(place: string): boolean {
  return (
    place.includes('node_modules/') ||
    place.startsWith(OWN_FOLDER.href) ||
    place.startsWith(OWN_FOLDER.pathname)
  );
}

/** The last bundle that was looked at: errors come in rows. */
let last: { url: string; map: SourceMap | null } | null = null;

function placeInBundle(url: string, row: number, column: number): string | null {
  if (last?.url !== url) last = { url, map: mapOf(url) };
  const entry = last.map?.findEntry(row - 1, column - 1);
  return entry && 'originalSource' in entry ? `${entry.originalSource}:${entry.originalLine + 1}` : null;
}

function mapOf(url: string): SourceMap | null {
  const code = Buffer.from(url.slice(url.indexOf(',') + 1), 'base64').toString();
  const found = MAP.exec(code);
  try {
    return found ? new SourceMap(JSON.parse(Buffer.from(found[1]!, 'base64').toString())) : null;
  } catch {
    return null;
  }
}
