/** One line of robots.txt, ready to be matched. */
export interface Rule {
  allow: boolean;
  /** Length of the pattern as written: the longest match decides, and allow wins a tie. */
  priority: number;
  /** The pattern between its wildcards; one part only means a plain prefix. */
  parts: string[];
  anchored: boolean;
}

/** Patterns are compared with URLs as they are sent: UTF-8 escaped, escapes in upper case. */
function escapePattern(pattern: string): string {
  return pattern
    .toWellFormed()
    .replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase())
    .replace(/[^\x00-\x7f]+/g, encodeURIComponent);
}

function compileRule(allow: boolean, pattern: string, priority: number): Rule {
  const anchored = pattern.endsWith('$');
  return { allow, priority, anchored, parts: (anchored ? pattern.slice(0, -1) : pattern).split('*') };
}

const ESCAPED_UNRESERVED = /%(?:4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE]|3[0-9]|2[DE])/g;

/** What one line stands for; nothing when its value is empty. */
export function compileRules(allow: boolean, value: string): Rule[] {
  const pattern = escapePattern(value);
  if (pattern === '') return [];
  const rules = [compileRule(allow, pattern, pattern.length)];
  const slashAt = pattern.lastIndexOf('/');
  if (allow && slashAt !== -1 && pattern.startsWith('/index.htm', slashAt)) {
    const folder = `${pattern.slice(0, slashAt + 1)}$`;
    rules.push(compileRule(allow, folder, folder.length));
  }
  if (!allow) {
    // Google compares escapes byte by byte, but our URLs have none for unreserved characters: `/%7Eme` must hold for
    // `/~me` too. Only for disallow: in doubt, stay out.
    const decoded = pattern.replace(ESCAPED_UNRESERVED, (code) => decodeURIComponent(code));
    if (decoded !== pattern) rules.push(compileRule(allow, decoded, pattern.length));
  }
  return rules;
}

/** Leftmost matches, part by part, so that wildcards cannot multiply. */
export function matchesRule(rule: Rule, path: string): boolean {
  const { parts, anchored } = rule;
  if (!path.startsWith(parts[0]!)) return false;
  let at = parts[0]!.length;
  const last = parts.length - 1;
  if (last === 0) return !anchored || at === path.length;
  for (let i = 1; i < last; i++) {
    at = path.indexOf(parts[i]!, at);
    if (at === -1) return false;
    at += parts[i]!.length;
  }
  const tail = parts[last]!;
  if (anchored) return path.length - tail.length >= at && path.endsWith(tail);
  return path.indexOf(tail, at) !== -1;
}

/** Path and query of a URL, without a parser, as Google finds them; also in what is no URL. */
export function pathOf(url: string): string {
  const start = url.startsWith('//') ? 2 : 0;
  const schemeAt = url.indexOf('://', start);
  const early = url.slice(start, schemeAt === -1 ? start : schemeAt).search(/[/?;]/);
  let at = schemeAt === -1 || early !== -1 ? start : schemeAt + 3;
  const hashAt = url.indexOf('#', start);
  const end = hashAt === -1 ? url.length : hashAt;
  for (; at < end; at++) {
    const code = url.charCodeAt(at);
    if (code === 47 || code === 63 || code === 59) break;
  }
  if (at >= end) return '/';
  const path = url.slice(at, end);
  const rooted = path.startsWith('/') ? path : `/${path}`;
  return rooted.includes('%') ? rooted.replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase()) : rooted;
}
