/**
 * Paths of Firecrawl are regular expressions that may match anywhere in the path. The simple ones, which are nearly all,
 * are patterns of ours as well; a dot alone is taken for the dot that nearly everyone means. Null for the others: a pattern
 * that is only similar would crawl other pages than meant.
 */
export function patternOfRegex(regex: string): string | null {
  const isFromStart = regex.startsWith('^');
  const isToEnd = regex.endsWith('$') && !regex.endsWith('\\$');
  const text = regex.slice(isFromStart ? 1 : 0, isToEnd ? -1 : undefined);
  let pattern = '';
  for (const [part] of text.matchAll(PARTS)) {
    const known = WILDCARDS.get(part);
    if (known !== undefined) pattern += known;
    else if (/^\\[^\w*]$/.test(part)) pattern += part[1];
    else if (/^[\w\-/%~!@&=:;,. ]$/.test(part)) pattern += part;
    else return null;
  }
  const start = isFromStart ? '' : '**';
  const whole = `${start}${pattern}${isToEnd ? '' : '**'}`.replace(/\*{3,}/g, '**');
  if (whole.startsWith('/')) return whole;
  return isFromStart ? null : `/${whole}`;
}

const PARTS = /\.\*\??|\.\+\??|\[\^\/\][*+]|\\.|./gs;

const WILDCARDS = new Map([
  ['.*', '**'],
  ['.*?', '**'],
  ['.+', '**'],
  ['.+?', '**'],
  ['[^/]*', '*'],
  ['[^/]+', '*'],
]);
