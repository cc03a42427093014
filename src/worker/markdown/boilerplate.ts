import type { Element } from 'domhandler';

/** What of a page is no content: never shown, or around the content on every page of a site. */

const NEVER_TEXT = new Set(
  (
    'script style noscript template head title meta link base iframe frame frameset noframes object embed applet ' +
    'canvas svg audio video source track map area select option optgroup datalist textarea input progress meter ' +
    'dialog nav rp rt annotation annotation-xml colgroup col param'
  ).split(' '),
);
const UNSEEN = /(?:^|\s)(?:sr-only|visually-?hidden|screen-reader-text)(?:\s|$)/;
const UNSEEN_STYLE = /display\s*:\s*none|visibility\s*:\s*hidden/i;
const STYLE_LENGTH_MAX = 1_000;
const NAMES_LENGTH_MAX = 500;

/** Scripts, menus, form fields, and what browsers do not show. */
export function isNeverContent(element: Element): boolean {
  return NEVER_TEXT.has(element.name) || isHidden(element.attribs);
}

function isHidden(attributes: Element['attribs']): boolean {
  const { style, class: classes } = attributes;
  if (attributes.hidden !== undefined || attributes['aria-hidden'] === 'true') return true;
  if (style !== undefined && UNSEEN_STYLE.test(style.slice(0, STYLE_LENGTH_MAX))) return true;
  return classes !== undefined && UNSEEN.test(classes.slice(0, NAMES_LENGTH_MAX));
}

const AROUND_ROLES = new Set(
  'navigation banner contentinfo search dialog alertdialog menu menubar toolbar complementary'.split(' '),
);
/** Words in class names and ids, each on its own. */
const AROUND_WORDS = new Set(
  (
    'ad ads adsense advert advertisement advertising banner breadcrumb breadcrumbs byline-share combx comment comments ' +
    'community consent cookie cookies disqus dropdown footer footnav gdpr infobar legends masthead menu modal nav navbar ' +
    'navigation newsletter onetrust pager pagination paywall popup promo promotion recirc recommended recommendations ' +
    'related remark replies rss share sharing shoutbox sidebar sidenav signup skip skiplink social sponsor sponsored ' +
    'subscribe subscription tags toc toolbar topbar trending widget widgets'
  ).split(' '),
);
/** Words that take it back: `comment-content`, `has-sidebar`, `no-banner`. */
const WITHIN_WORDS = new Set(
  'has with no body content main article layout page wrapper container'.split(' '),
);

/** Whether its names say that an element is beside the content. Only a guess. `known` remembers names: most repeat. */
export function looksBeside({ name, attribs }: Element, known: Map<string, boolean>): boolean {
  if (name === 'html' || name === 'body' || name === 'main' || name === 'article') return false;
  if (attribs.role !== undefined && AROUND_ROLES.has(attribs.role)) return true;
  if (attribs.class === undefined && attribs.id === undefined) return false;
  const names = `${attribs.class ?? ''} ${attribs.id ?? ''}`.slice(0, NAMES_LENGTH_MAX);
  let isBeside = known.get(names);
  if (isBeside === undefined) {
    isBeside = names.split(/\s+/).some((one) => saysBeside(one));
    known.set(names, isBeside);
  }
  return isBeside;
}

function saysBeside(name: string): boolean {
  const words = name
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split(/[^a-z]+/);
  return words.some((word) => AROUND_WORDS.has(word)) && !words.some((word) => WITHIN_WORDS.has(word));
}
