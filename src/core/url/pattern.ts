import { SeineError } from '../errors.ts';
import { LIMITS } from '../limits.ts';

/**
 * URL patterns: `*` stays within a segment, `**` does not, all else is literal, and the whole string must match.
 * Matching follows all ways at once instead of going back, so no pattern can blow up.
 */

/** What a pattern is compared with: parts of the URL `https://host/path?query`. */
type Target = 'path' | 'path-query' | 'host-on' | 'url';

interface Pattern {
  target: Target;
  matches(text: string): boolean;
}

const SLASH = 47;
const STAR = -1;
const GLOBSTAR = -2;

/** `/**` + `.jpg` is meant where `*.jpg` is written, though it reads like a host. */
const FILE_NAME = /^[^/]*\.(?:html?|php|aspx?|jsp|jpe?g|png|gif|webp|svg|ico|css|js|json|xml|pdf|txt|csv)$/i;
const HOST = /^(?:[^/?#@[\]:]*[.*][^/?#@[\]:]*|localhost|\[[0-9a-f:.]+\])(?::[0-9*]+)?$/i;

function refuse(pattern: string, problem: string): never {
  throw new SeineError(`the pattern ${JSON.stringify(pattern.slice(0, 200))} ${problem}`, {
    written: pattern,
    hint: 'write /path/* for paths or https://host/path/** for whole URLs; * matches within a segment, ** across segments',
  });
}

/** As in normalised URLs: UTF-8 escaped, escapes in upper case. */
function escapeText(text: string): string {
  return text
    .toWellFormed()
    .replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase())
    .replace(/[^\x00-\x7f]+/g, encodeURIComponent);
}

function normalizeHost(host: string): string {
  const labels = host.toLowerCase().split('.');
  return labels
    .map((label) => (/[^\x00-\x7f]/.test(label) ? (URL.parse(`http://${label}`)?.host ?? label) : label))
    .join('.');
}

/** Throws a SeineError when the pattern cannot mean anything. `sockets`: it may be of WebSockets. */
export function parsePattern(pattern: string, { sockets = false } = {}): Pattern {
  if (pattern === '') refuse(pattern, 'is empty');
  if (/\s/.test(pattern)) refuse(pattern, 'contains white space; write %20 for a space');
  if (pattern.length > LIMITS.urlLengthMax)
    refuse(pattern, `is longer than ${LIMITS.urlLengthMax} characters`);
  if (pattern.includes('#')) refuse(pattern, 'contains #, but URLs are matched without their fragment');
  if (pattern.startsWith('/')) {
    return {
      target: pattern.includes('?') ? 'path-query' : 'path',
      matches: compileGlob(escapeText(pattern)),
    };
  }
  if (/^\*+$/.test(pattern)) return { target: 'url', matches: compileGlob('**') };
  const schemeEnd = pattern.indexOf('://');
  const scheme = schemeEnd === -1 ? '' : pattern.slice(0, schemeEnd + 3).toLowerCase();
  const isKnown = /^(?:https?|http\*|\*):/.test(scheme) || (sockets && /^(?:wss?|ws\*):/.test(scheme));
  if (/^wss?:/.test(scheme) && !sockets)
    refuse(pattern, 'has a scheme other than http or https; captures of WebSockets need of: frames');
  if (scheme !== '' && !isKnown)
    refuse(pattern, `has a scheme other than ${sockets ? 'http, https, ws or wss' : 'http or https'}`);
  const rest = pattern.slice(scheme.length);
  const hostEnd = rest.search(/[/?]/);
  const host = hostEnd === -1 ? rest : rest.slice(0, hostEnd);
  // `**` may span host and path, as in `**session=**`.
  if (!host.includes('**') && !HOST.test(host)) refuse(pattern, 'must start with / or with a host');
  if (scheme === '' && hostEnd === -1 && FILE_NAME.test(host))
    refuse(pattern, `looks like a host; for files write /**${host.slice(host.lastIndexOf('.'))}`);
  // A host alone means everything on it.
  const tail = hostEnd === -1 ? (host.includes('**') ? '' : '/**') : rest.slice(hostEnd);
  const text = host.includes('**') ? host : normalizeHost(host);
  return {
    target: scheme === '' ? 'host-on' : 'url',
    matches: compileGlob(escapeText(scheme + text + tail)),
  };
}

/** Literal head and tail are compared at once; most patterns have no more than one wildcard between them. */
export function compileGlob(pattern: string): (text: string) => boolean {
  const first = pattern.indexOf('*');
  if (first === -1) return (text) => text === pattern;
  const head = pattern.slice(0, first);
  const tail = pattern.slice(pattern.lastIndexOf('*') + 1);
  const middle = pattern.slice(first, pattern.length - tail.length).replace(/\*{2,}/g, '**');
  const lengthMin = head.length + tail.length;
  const fits = (text: string) => text.length >= lengthMin && text.startsWith(head) && text.endsWith(tail);
  if (middle === '**') return fits;
  if (middle === '*') {
    return (text) => {
      if (!fits(text)) return false;
      const slashAt = text.indexOf('/', head.length);
      return slashAt === -1 || slashAt >= text.length - tail.length;
    };
  }
  const tokens = tokenize(middle);
  const floors = floorsOf(tokens);
  return (text) => fits(text) && simulate(tokens, floors, text, head.length, text.length - tail.length);
}

function tokenize(pattern: string): Int32Array {
  const tokens: number[] = [];
  for (let i = 0; i < pattern.length; i++) {
    if (pattern[i] !== '*') tokens.push(pattern.charCodeAt(i));
    else if (pattern[i + 1] !== '*') tokens.push(STAR);
    else {
      tokens.push(GLOBSTAR);
      i++;
    }
  }
  return Int32Array.from(tokens);
}

/** For each wildcard, the first of the places before it that it can stand in for. */
function floorsOf(tokens: Int32Array): Int32Array {
  let floor = 0;
  return tokens.map((token, i) => {
    if (token === SLASH || token === GLOBSTAR) floor = i + 1;
    return token === GLOBSTAR ? 0 : floor;
  });
}

/** Marks every place in the pattern that the text so far can have led to: one pass, text × pattern at worst. */
function simulate(tokens: Int32Array, floors: Int32Array, text: string, start: number, end: number): boolean {
  const last = tokens.length;
  const live = new Uint8Array(last + 1);
  live[0] = 1;
  // Wildcards may be empty.
  for (let i = 0; i < last && tokens[i]! < 0; i++) live[i + 1] = 1;
  let lowest = 0;
  let highest = last;
  while (highest > 0 && live[highest] === 0) highest--;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    let top = -1;
    for (let i = highest; i >= lowest; i--) {
      if (live[i] === 0) continue;
      const token = i < last ? tokens[i]! : 0;
      if (token >= 0) {
        live[i] = 0;
        if (token !== code || i === last) continue;
        live[i + 1] = 1;
        top = Math.max(top, i + 1);
      } else if (token === STAR && code === SLASH) {
        live[i] = 0;
      } else {
        top = Math.max(top, i);
      }
    }
    if (top === -1) return false;
    for (let i = lowest; i < last && i <= top; i++) {
      if (live[i] === 0 || tokens[i]! >= 0) continue;
      live[i + 1] = 1;
      top = Math.max(top, i + 1);
      // What an earlier place could still match, this wildcard can too, so those are forgotten: down to the last
      // slash for `*`, all of them for `**`. Without this, 30 wildcards cost 1 ms instead of 0.1 ms.
      const floor = floors[i]!;
      if (floor < i) live.fill(0, floor, i);
      if (floor <= lowest) lowest = i;
    }
    highest = top;
  }
  return live[last] === 1;
}

/** One function for all patterns: true when any of them matches the normalised URL. */
export function compilePatterns(patterns: string[], options = {}): (url: string) => boolean {
  const parsed = patterns.map((pattern) => parsePattern(pattern, options));
  return (url) => {
    const hostAt = url.indexOf('://') + 3;
    const slashAt = url.indexOf('/', hostAt);
    const pathAt = slashAt === -1 ? url.length : slashAt;
    const queryAt = url.indexOf('?', pathAt);
    for (const { target, matches } of parsed) {
      if (target === 'url') {
        if (matches(url)) return true;
      } else if (target === 'path') {
        if (matches(url.slice(pathAt, queryAt === -1 ? url.length : queryAt))) return true;
      } else if (matches(url.slice(target === 'host-on' ? hostAt : pathAt))) return true;
    }
    return false;
  };
}
