import { SourceMap } from 'node:module';

/** Of a frame of a stack: a stored bundle, or a file. */
const FRAME =
  /(?:\(|at |async )(data:text\/javascript;base64,[A-Za-z0-9+/=]+|file:\/\/[^\s)]+?|\/[^\s():]+?):(\d+):(\d+)\)?$/;
const MAP = /\n\/\/# sourceMappingURL=data:application\/json;base64,([A-Za-z0-9+/=]+)\s*$/;
/** A stack of frames with whole bundles in their names is long; the one that is looked for is among the first. */
const FRAMES_MAX = 10;

const OWN_FOLDER = new URL('../../', import.meta.url);

/** Where in the code of the job an error was thrown, as `shop.ts:12`; null when that is not known. */
export function placeOfError(error: unknown): string | null {
  const stack = error instanceof Error ? error.stack : undefined;
  if (typeof stack !== 'string') return null;
  for (const line of stack.split('\n').slice(0, FRAMES_MAX)) {
    const [, file, row, column] = FRAME.exec(line) ?? [];
    if (!file || !row || !column) continue;
    const place = file.startsWith('data:')
      ? placeInBundle(file, Number(row), Number(column))
      : `${file}:${row}`;
    if (place !== null && !isOthers(place)) return place;
  }
  return null;
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
