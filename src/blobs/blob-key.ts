/** What a writer left behind is removed when it is this old: no batch lasts a day. */
export const TEMPORARY_AGE_MS_MAX = 24 * 3_600_000;

/** Keys become paths and URLs, so they are held to what is harmless in both. A bad one is a bug of the caller. */

const CHARACTERS = /^[A-Za-z0-9._/=-]+$/;
/** File systems stop at 255 bytes a name. */
const SEGMENT_LENGTH_MAX = 200;
const KEY_LENGTH_MAX = 512;

export function checkKey(key: string): string {
  const defect = defectOf(key) ?? key.split('/').map(segmentDefectOf).find(Boolean);
  if (defect) throw new TypeError(`not a blob key, ${defect}: ${JSON.stringify(key.slice(0, 100))}`);
  return key;
}

/** The beginning of a key, so it may also be empty, or end with a slash or within a name. */
export function checkPrefix(prefix: string): string {
  if (prefix === '') return prefix;
  const whole = prefix.endsWith('/') ? prefix.slice(0, -1) : prefix;
  const defect = defectOf(prefix) ?? whole.split('/').map(segmentDefectOf).find(Boolean);
  if (defect) throw new TypeError(`not a blob prefix, ${defect}: ${JSON.stringify(prefix.slice(0, 100))}`);
  return prefix;
}

function defectOf(text: string): string | null {
  if (text.length > KEY_LENGTH_MAX) return 'it is too long';
  if (!CHARACTERS.test(text)) return 'it may hold only A-Z a-z 0-9 . _ / = -';
  return text.includes('..') ? 'it holds ..' : null;
}

function segmentDefectOf(segment: string): string | null {
  if (segment === '') return 'it has an empty part';
  // Names that begin with a dot are the folder's own.
  if (segment.startsWith('.')) return 'a part of it begins with a dot';
  return segment.length > SEGMENT_LENGTH_MAX ? 'a part of it is too long' : null;
}
