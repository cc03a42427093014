import type { Element } from 'domhandler';

/** What of a page is no content: never shown, or around the content on every page of a site. */

const NEVER_TEXT = new Set(
  (
    'script style noscript template head title meta link base iframe frame frameset noframes object embed applet ' +
    'canvas svg audio video source track map area select option optgroup datalist textarea input progress meter ' +
    'dialog nav rp rt annotation annotation-xml colgroup col param'
  ).split(' '),
);
const UNSEEN = /(?:^|\s)(?:sr-only|visually-?hidden|screen-reader-text|mw-editsection)(?:\s|$)/;
const UNSEEN_STYLE = /display\s*:\s*none|visibility\s*:\s*hidden/i;
const SKIP_LINK = /(?:^|\s)(?:hidden|hide|is-hidden|skip(?:-\w+)*)(?:\s|$)/i;
const STYLE_LENGTH_MAX = 1_000;
const NAMES_LENGTH_MAX = 500;

/** Scripts, menus, form fields, and what browsers do not show. */
export function isNeverContent(element: Element): boolean {
  return NEVER_TEXT.has(element.name) || isHidden(element.attribs) || isSkipLink(element);
}

/** "Continue reading the main story": for those who hear the page; style sheets hide it. */
function isSkipLink({ name, attribs }: Element): boolean {
  if (name !== 'a' || attribs.class === undefined || attribs.href?.[0] !== '#') return false;
  return SKIP_LINK.test(attribs.class.slice(0, NAMES_LENGTH_MAX));
}

function isHidden(attributes: Element['attribs']): boolean {
  const { style, class: classes } = attributes;
  if (attributes.hidden !== undefined || attributes['aria-hidden'] === 'true') return true;
  if (style !== undefined && UNSEEN_STYLE.test(style.slice(0, STYLE_LENGTH_MAX))) return true;
  return classes !== undefined && UNSEEN.test(classes.slice(0, NAMES_LENGTH_MAX));
}

/** What a part of a page is, if it is not content. */
export type Beside = 'comments' | 'byline' | 'other';

const AROUND_ROLES = new Set(
  'navigation banner contentinfo search dialog alertdialog menu menubar toolbar complementary'.split(' '),
);
/** Names of boxes that are laid over a page, which hardly any body has. */
const OVERLAY = /(?:^|[^a-z])(?:modal|lightbox|popup|onetrust|outbrain|taboola)(?:[^a-z]|$)/i;

export function isOverlay({ attribs }: Element): boolean {
  return OVERLAY.test(`${attribs.class ?? ''} ${attribs.id ?? ''}`.slice(0, NAMES_LENGTH_MAX));
}

/** Words in class names and ids, each on its own. */
const AROUND_WORDS = new Set(
  (
    'ad ads adsense advert advertisement advertising author-bio banner bio breadcrumb breadcrumbs buy buybox ' +
    'catlinks combx consent cookie cookies crosslinks disclaimer disclosure dropdown editsection feedback footer footnav ' +
    'gdpr infobar jumplinks masthead menu modal nav navbar navbox navigation newsletter noprint offer ' +
    'onetrust outbrain pager pagination paywall popular popup promo promotion rail recirc recirculation recommended ' +
    'recommendation recommendations related relatedposts rightbar rightcol rightcolumn rightrail rss secondary share sharedaddy sharing shoutbox sidebar sidenav sig ' +
    'signature signup similar skip skiplink social sponsor sponsored subscribe subscription taboola tags teaser teasers ' +
    'toc toolbar topbar trending upsell widget widgets'
  ).split(' '),
);
const COMMENT_WORDS = new Set('comment comments community disqus remark replies respond'.split(' '));
const BYLINE_WORDS = new Set(
  'author authors byline date dateline datetime meta postdate posted postmeta published pubdate readtime time timestamp updated writer'.split(
    ' ',
  ),
);
/** Words that take it back: `comment-content`, `has-sidebar`, `no-banner`. */
const WITHIN_WORDS = new Set(
  'has with no body content main article layout page wrapper container enabled text'.split(' '),
);

/** Words that only say where a part is when they come first: `article__share`, `page-footer`. */
const WHOLE_WORDS = new Set('article body content main page text'.split(' '));

/** Words that take nothing back where the first names it all: `article_footer_comments`, `comments-content`. */
const COMMENTS_NAME =
  /(?:^|[^a-z])comments(?:[^a-z]|$)|comment-?_?(?:area|box|form|list|section|wrapper|wrap|container)/;
const NOT_HERE = /(?:^|[^a-z])(?:has|with|no|enabled)(?:[^a-z]|$)/;
/** What a style sheet hides until it is asked for; on small screens only, where another word takes it back. */
const HIDDEN_NAMES = new Set(['hidden', 'hide', 'd-none', 'is-hidden']);
const SHOWN_ELSEWHERE = /:(?:block|flex|grid|inline|table|contents)|d-\w+-/;

/** What the names of an element say that it is. Only a guess. `known` remembers names: most repeat. */
export function besideByNames({ attribs }: Element, known: Map<string, Beside | null>): Beside | null {
  if (attribs.role !== undefined && AROUND_ROLES.has(attribs.role)) return 'other';
  if (attribs.rel === 'author' || attribs.itemprop === 'author' || attribs.itemprop === 'datePublished')
    return 'byline';
  if (attribs.class === undefined && attribs.id === undefined) return null;
  const names = `${attribs.class ?? ''} ${attribs.id ?? ''}`.slice(0, NAMES_LENGTH_MAX);
  let beside = known.get(names);
  if (beside === undefined) {
    beside = null;
    const list = names.split(/\s+/);
    for (const name of list) beside ??= besideByName(name);
    if (list.some((name) => HIDDEN_NAMES.has(name)) && !SHOWN_ELSEWHERE.test(names)) beside ??= 'other';
    known.set(names, beside);
  }
  return beside;
}

/** Words stand whole: `88ad` is what a build tool made up. */
function besideByName(name: string): Beside | null {
  const spaced = name.replace(/([a-z])([A-Z])/g, '$1-$2').toLowerCase();
  if (COMMENTS_NAME.test(spaced) && !NOT_HERE.test(spaced)) return 'comments';
  const words = spaced.split(/[^a-z0-9]+/).map((word) => word.replace(/\d+$/, ''));
  if (words.some((word, at) => WITHIN_WORDS.has(word) && (at > 0 || !WHOLE_WORDS.has(word))))
    return words.some(isBylineMeta) ? 'byline' : null;
  if (words.some((word) => COMMENT_WORDS.has(word))) return 'comments';
  if (words.some((word) => AROUND_WORDS.has(word))) return 'other';
  return words.some((word) => BYLINE_WORDS.has(word)) ? 'byline' : null;
}

/** `article-meta` is no article. */
function isBylineMeta(word: string): boolean {
  return word === 'meta' || word === 'byline';
}

/** A label is shorter than this; a longer line is a sentence. */
export const LABEL_CHARACTERS_MAX = 60;

const COMMENTS =
  /^(?:\(?[\d.,]+\)?[ »:|-]*)?(?:(?:all|recent|(?:user|reader)s?['’]?s?) )?(?:comments?|replies|responses|kommentare?r?|commentaires?|comentarios?|comentários?|comentarii|commenti|reacties|komentarze|komentáře|komentari|kommentit|hozzászólások|коментарі|коментари|комментарии|σχόλια|yorumlar|评论|評論|コメント|댓글|التعليقات|תגובות)(?: ?\(?[\d.,]+\)?)?:?$|^(?:leave a (?:reply|comment)|join the (?:conversation|discussion)|(?:add|post|write) a comment)/i;
const OTHER =
  /^(?:share(?: (?:this|on|via|the)\b.*)?:?$|(?:artikel )?teilen|partager|compartir|condividi|поделиться|シェア|分享|この記事をシェア|شارك|שתפו|공유|advertisement|anzeige$|werbung$|publicit|реклама|広告|广告|sponsored|about the author|written by|über den autor|à propos de l.auteur|sobre el autor|об авторе|contents$|table of contents|on this page|in this article|inhalt$|sommaire$|subscribe|already a subscriber|(?:to )?continue reading|keep reading for|become a member|sign (?:up|in)\b|(?:our |the )?newsletter|stay in the loop|stay (?:informed|up to date)|before you go|never miss|get the (?:app|newsletter)|follow us|(?:we value )?your privacy|we value your privacy|cookie|was this (?:page|article) helpful|press contact|media contact)/i;
const LINKS =
  /^(?:related|more (?:from|on|in|by|stories|about|like|news|articles)|you (?:may|might) (?:also )?(?:like|be)|you (?:may|might) also|read (?:more|next|also|on)|also (?:read|on)|recommended|most (?:read|popular|viewed)|trending|popular|latest|don.t miss|up next|next up|top stories|editor.?s.? picks|similar|customers also|people also|frequently bought|hot network|tags?\b|topics?:?$|filed under|posted in|categor|mehr zum thema|lesen sie auch|das könnte|à lire aussi|lire aussi|sur le même|te puede interesar|lea también|leia (?:também|mais)|leggi anche|lees ook|читайте также|по теме|関連記事|人気記事|相关|관련|أخبار ذات|اقرأ|כתבות נוספות)/i;

/** `STORY: another page`, in capitals; how much of it is a link decides. */
const KICKER = /^\p{Lu}[\p{Lu}\p{N} '’&-]{2,30}: /u;

/** What stands below an article about those who wrote it: how to reach them, and where to follow them. */
const SIGN_OFF =
  /^(?:follow (?:\S+ ){1,6}on (?:twitter|facebook|instagram|google)|like us on facebook|to contact the (?:reporter|editor|author|writer)s?\b|(?:contact|e-?mail) (?:\S+ ){1,4}at \S+@)/i;

const RIGHTS =
  /©|\(c\) ?\d{4}|all rights reserved|alle rechte vorbehalten|tous droits réservés|todos los derechos|tutti i diritti|все права защищены|無断転載|版权所有|版權所有|무단 ?전재|جميع الحقوق|כל הזכויות/i;
const CONSENT = /cookie|privacy|datenschutz|terms of use/i;
const AGREE =
  /\b(?:agree|accept|consent|partners|acceptance|your experience|zustimm|erlebnis|accepte|expérience)/i;
/** Of a longer block, what it begins with is looked at. */
export const NOTICE_CHARACTERS = 200;

/** Whether a block begins like what sites say about themselves: rights, cookies, where to follow them. */
export function isNotice(text: string): boolean {
  return RIGHTS.test(text) || SIGN_OFF.test(text) || (CONSENT.test(text) && AGREE.test(text));
}

/** What a short line says about the box that it opens; `links` where it takes links to be one. */
export function besideByLabel(text: string): Beside | 'links' | null {
  if (COMMENTS.test(text)) return 'comments';
  if (OTHER.test(text)) return 'other';
  return LINKS.test(text) || KICKER.test(text) ? 'links' : null;
}

const DATE =
  /\b\d{4}[-./]\d{1,2}[-./]\d{1,2}\b|\b\d{1,2}[-./]\d{1,2}[-./]\d{2,4}\b|\b\d{1,2}:\d{2}\b|\b\d{1,2}(?:st|nd|rd|th)?\.? \p{L}{3,10}\.?,? \d{4}\b|\b\p{L}{3,10}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}\b|\d{4}年\d{1,2}月|\b\d+ (?:min|minutes?|hours?|days?)\b/iu;
const BY =
  /^(?:by|von|par|por|di|door|автор:?|posted|published|updated|asked|veröffentlicht|publié|publicado|last (?:change|updated|modified))\b/i;

/** Whether a short line below a title says who wrote it and when. */
export function isByline(text: string): boolean {
  return DATE.test(text) || BY.test(text);
}
