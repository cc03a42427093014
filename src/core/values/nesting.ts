/** How deep data lies in itself. Deeper data than anyone means would end whoever reads it by recursion. */

const QUOTE = 34;
const BACKSLASH = 92;
const LIST_BEGIN = 91;
const LIST_END = 93;
const OBJECT_BEGIN = 123;
const OBJECT_END = 125;

/** Whether lists and objects in valid JSON text lie more than `max` deep in each other. */
export function isJsonDeeper(json: string, max: number): boolean {
  // Each level takes two characters.
  if (json.length <= 2 * max) return false;
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfText(json, at);
    else if (code === LIST_BEGIN || code === OBJECT_BEGIN) {
      if (++depth > max) return true;
    } else if (code === LIST_END || code === OBJECT_END) depth--;
  }
  return false;
}

/** Where the quote is that closes the one at `start`. */
function endOfText(json: string, start: number): number {
  let at = json.indexOf('"', start + 1);
  while (at !== -1 && isEscaped(json, at)) at = json.indexOf('"', at + 1);
  return at === -1 ? json.length : at;
}

function isEscaped(json: string, at: number): boolean {
  let slashes = 0;
  while (json.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++;
  return slashes % 2 === 1;
}

/** The same for data that came from JSON, where nothing is part of two things; goes no deeper than `max` itself. */
export function isDataDeeper(value: unknown, max: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (max === 0) return true;
  for (const item of Array.isArray(value) ? value : Object.values(value))
    if (isDataDeeper(item, max - 1)) return true;
  return false;
}
