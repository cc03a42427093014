/** Elements whose content is not for reading. */
const UNREAD = ['script', 'style', 'svg'] as const;

/** The words of a page in lower case, roughly and in linear time: tags away, spaces collapsed. Not for extraction. */
export function textOfHtml(lower: string): string {
  let text = '';
  let at = 0;
  while (at < lower.length) {
    const open = lower.indexOf('<', at);
    if (open === -1) return collapsed(`${text} ${lower.slice(at)}`);
    text += lower.slice(at, open);
    if (isNameStart(lower.charCodeAt(open + 1))) text += ' ';
    else if (!isMarkup(lower.charCodeAt(open + 1))) text += '<';
    at = endOf(lower, open);
  }
  return collapsed(text);
}

/** Where reading goes on after the tag, comment or unread element that begins at `open`. */
function endOf(lower: string, open: number): number {
  if (!isMarkup(lower.charCodeAt(open + 1)) && !isNameStart(lower.charCodeAt(open + 1))) return open + 1;
  if (lower.startsWith('<!--', open)) return after(lower, '-->', open + 4);
  const unread = UNREAD.find((name) => lower.startsWith(name, open + 1));
  if (unread !== undefined) return after(lower, '>', after(lower, `</${unread}`, open) - 1);
  return after(lower, '>', open);
}

function after(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at === -1 ? text.length : at + sign.length;
}

const isNameStart = (code: number) => code >= 97 && code <= 122;
/** An end tag, a comment or a declaration. */
const isMarkup = (code: number) => code === 47 || code === 33 || code === 63;

function collapsed(text: string): string {
  return text.replace(/[\s\u00a0]+/g, ' ').trim();
}
