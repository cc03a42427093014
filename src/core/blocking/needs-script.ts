/** Of a page that may need scripts: what its shell says, it says early; style sheets and data may stand before it. */
export const SHELL_CHARS_MAX = 512 * 1024;

/**
 * Tells pages that are nothing until their scripts have run from pages that say something. Looks at the text in one pass
 * that ends as soon as there is plenty: most pages cost a few microseconds. A wrong yes costs a visit by a browser, a
 * wrong no costs the content, so little text and a script is nearly enough.
 */

/** Characters that can be read, white space apart. The frame of a page, with its menu and imprint, has more. */
const LITTLE_TEXT = 200;
const NO_TEXT = 40;
/** With an empty place for an application, or words about it, there may be a menu and an imprint beside it. */
const SOME_TEXT = 600;
/** Of a page on which no field was found. */
const FRAME_TEXT = 1_500;
/** A page of pictures says little, and is all there. */
const MANY_THINGS = 12;

/** Where frameworks put what they make: by id, or as an element of their own. */
const ROOT_IDS = new Set(
  'root,app,__next,__nuxt,___gatsby,react-root,app-root,application,main-app,mount,vue-app,q-app,svelte,app-mount,spa-root,ember-app,single-spa-application'.split(
    ',',
  ),
);
const ROOT_TAGS = new Set(['app-root', 'ion-app', 'my-app', 'app-component']);
const UNREAD = new Set(['script', 'style', 'noscript', 'template', 'svg', 'title', 'textarea', 'iframe']);
const DATA_SCRIPT =
  /\btype\s*=\s*["']?(?!text\/(?:java|ecma)script|application\/(?:x-)?javascript|module)[\w/+.-]+/;
const ID = /\bid\s*=\s*["']?([\w:-]{1,40})/;
const WANTS_SCRIPT = /java\s?script|enable\s+js\b/;
const WAITING = /\b(?:loading|please wait|one moment|just a moment)\b/;

interface Signs {
  /** Readable characters, up to where counting stopped, and the first of them. */
  chars: number;
  words: string;
  scripts: number;
  /** Links, pictures, forms. */
  things: number;
  emptyRoot: string | null;
  notice: boolean;
}

/** What speaks for scripts, for people; null for a page that can be read as it is. `isEmpty`: no field was found on it. */
export function needsScript(html: string, { isEmpty = false }: { isEmpty?: boolean } = {}): string | null {
  const signs = readSigns(html.slice(0, SHELL_CHARS_MAX).toLowerCase(), isEmpty ? FRAME_TEXT : SOME_TEXT);
  const { chars, words, scripts, things, emptyRoot, notice } = signs;
  if (scripts === 0) return null;
  const beside = `with ${chars} characters of text`;
  if (emptyRoot !== null && chars < SOME_TEXT) return `an empty <${emptyRoot}> ${beside}`;
  if (notice && chars < SOME_TEXT && things < MANY_THINGS)
    return `a notice that asks for JavaScript ${beside}`;
  if (isEmpty && chars < FRAME_TEXT && things < MANY_THINGS) return `no fields, and scripts ${beside}`;
  if (chars >= LITTLE_TEXT || things >= MANY_THINGS) return null;
  if (WAITING.test(words)) return `a loading message ${beside}`;
  return chars < NO_TEXT && things === 0 ? `scripts ${beside}` : null;
}

function readSigns(lower: string, enough: number): Signs {
  const signs: Signs = { chars: 0, words: '', scripts: 0, things: 0, emptyRoot: null, notice: false };
  let at = 0;
  while (at < lower.length && signs.chars < enough) {
    const open = lower.indexOf('<', at);
    addText(signs, lower.slice(at, open === -1 ? lower.length : open));
    if (open === -1) break;
    if (lower.startsWith('<!--', open)) {
      at = after(lower, '-->', open + 4);
      continue;
    }
    at = after(lower, '>', open);
    const tag = lower.slice(open + 1, at - 1);
    const name = /^[a-z][\w-]{0,40}/.exec(tag)?.[0];
    if (name === undefined) continue;
    addTag(signs, name, tag, lower, at);
    if (!UNREAD.has(name) || tag.endsWith('/')) continue;
    const end = after(lower, `</${name}`, at);
    if (name === 'noscript') signs.notice ||= WANTS_SCRIPT.test(lower.slice(at, Math.min(end, at + 2_000)));
    at = after(lower, '>', end);
  }
  return signs;
}

function addText(signs: Signs, text: string): void {
  if (text.trim() === '') return;
  if (signs.words.length < LITTLE_TEXT) signs.words += ` ${text.slice(0, LITTLE_TEXT)}`;
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 32) signs.chars++;
}

function addTag(signs: Signs, name: string, tag: string, lower: string, end: number): void {
  if (name === 'script') {
    if (!DATA_SCRIPT.test(tag)) signs.scripts++;
  } else if (name === 'a' || name === 'img' || name === 'input' || name === 'video' || name === 'frame') {
    signs.things++;
  }
  if (signs.emptyRoot !== null) return;
  const id = ID.exec(tag)?.[1];
  if (!ROOT_TAGS.has(name) && (id === undefined || !ROOT_IDS.has(id))) return;
  const isEmpty = /^\s*(?:<!--[^<]{0,200}-->\s*)?<\/|^\s*<noscript/.test(lower.slice(end, end + 400));
  if (isEmpty) signs.emptyRoot = id === undefined ? name : `${name} id="${id}"`;
}

function after(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at === -1 ? text.length : at + sign.length;
}
