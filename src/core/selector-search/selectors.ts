import type { ElementFacts, PageFacts } from './page-facts.ts';

/**
 * CSS selectors whose first match on a page is a given element, from those that say what the element is to those that
 * only say where it stands. The lower the cost, the more likely the selector outlives a new design.
 */

interface Selector {
  css: string;
  cost: number;
}

/** Something that an element is called. */
interface Handle extends Selector {
  matches(element: ElementFacts): boolean;
}

const COST = { itemprop: 1, testId: 2, id: 2, tag: 3, class: 3, label: 4, plainTag: 6, place: 12 };
const TEST_IDS = ['data-testid', 'data-test', 'data-qa', 'data-cy', 'property', 'name'];
/** Few on a page, and about what they are called. */
const TELLING_TAGS = new Set(['h1', 'time', 'address', 'main', 'article', 'title']);
const LABEL_TAGS = new Set(['dt', 'th', 'label', 'strong', 'b', 'span']);
const LABEL_LENGTH_MAX = 40;
const IDENTIFIER = /^-?[A-Za-z_][\w-]*$/;
/** Words for looks, which say nothing of the content. */
const OF_LOOKS =
  /^(?:row|col|container|wrapper|inner|outer|clearfix|active|hidden|show|flex|grid|block|inline|left|right|center|bold|small|large|text|font|bg|btn|mb?|mt|ml|mr|mx|my|pb?|pt|pl|pr|px|py|w|h)(?:[-_]?\w{1,4})?$/i;
const ANCESTORS_MAX = 8;
const HANDLES_MAX = 6;
const SELECTORS_MAX = 12;

export function selectorsFor(page: PageFacts, index: number): Selector[] {
  const { elements } = page;
  const own = handlesOf(elements[index]!);
  const found: Selector[] = [];
  for (const handle of own) keep(found, page, index, [handle]);
  for (const outer of ancestorsOf(elements, index)) {
    for (const outerHandle of handlesOf(elements[outer]!).slice(0, 3))
      for (const handle of own) keep(found, page, index, [outerHandle, handle]);
  }
  const label = labelledBy(page, index);
  if (label) found.push(label);
  found.push(placeOf(page, index));
  const byCss = new Map(found.sort((a, b) => b.cost - a.cost).map((one) => [one.css, one]));
  return [...byCss.values()].sort((a, b) => a.cost - b.cost).slice(0, SELECTORS_MAX);
}

/** The outer handle, if there is one, and the own one: kept when the element is the first that they match. */
function keep(found: Selector[], { elements }: PageFacts, index: number, handles: readonly Handle[]): void {
  const inner = handles.at(-1)!;
  const outer = handles.length > 1 ? handles[0]! : null;
  let count = 0;
  let first = -1;
  for (let at = 0; at < elements.length; at++) {
    if (!inner.matches(elements[at]!)) continue;
    if (
      outer &&
      !ancestorsOf(elements, at, Number.POSITIVE_INFINITY).some((up) => outer.matches(elements[up]!))
    )
      continue;
    if (first === -1) first = at;
    if (first !== index) return;
    count++;
  }
  // One of many is the first by chance only.
  const crowd = Math.min(3, Math.log2(Math.max(1, count)));
  const cost = handles.reduce((sum, handle) => sum + handle.cost, 0) + (outer ? 1 : 0) + crowd;
  found.push({ css: handles.map(({ css }) => css).join(' '), cost });
}

function ancestorsOf(elements: readonly ElementFacts[], index: number, max = ANCESTORS_MAX): number[] {
  const found: number[] = [];
  for (let up = elements[index]!.parent; up !== -1 && found.length < max; up = elements[up]!.parent)
    found.push(up);
  return found;
}

function handlesOf({ tag, attributes }: ElementFacts): Handle[] {
  const handles: Handle[] = [];
  const byAttribute = (name: string, cost: number) => {
    const value = attributes.get(name);
    if (value === undefined || value === '' || value.length > 60 || isGenerated(value)) return;
    const css = `[${name}="${value.replace(/["\\]/g, '\\$&')}"]`;
    handles.push({ css, cost, matches: (other) => other.attributes.get(name) === value });
  };
  byAttribute('itemprop', COST.itemprop);
  for (const name of TEST_IDS) byAttribute(name, COST.testId);
  const id = attributes.get('id') ?? '';
  if (IDENTIFIER.test(id) && !isGenerated(id))
    handles.push({ css: `#${id}`, cost: COST.id, matches: (other) => other.attributes.get('id') === id });
  for (const name of classesOf(attributes)) {
    const cost = COST.class + (OF_LOOKS.test(name) ? 3 : 0);
    handles.push({ css: `.${name}`, cost, matches: (other) => classesOf(other.attributes).includes(name) });
    handles.push({
      css: `${tag}.${name}`,
      cost: cost + 0.5,
      matches: (other) => other.tag === tag && classesOf(other.attributes).includes(name),
    });
  }
  const cost = TELLING_TAGS.has(tag) ? COST.tag : COST.plainTag;
  handles.push({ css: tag, cost, matches: (other) => other.tag === tag });
  return handles.sort((a, b) => a.cost - b.cost).slice(0, HANDLES_MAX);
}

function classesOf(attributes: ReadonlyMap<string, string>): string[] {
  return (attributes.get('class') ?? '')
    .split(/\s+/)
    .filter((name) => IDENTIFIER.test(name) && !isGenerated(name));
}

/** Made by a program for one build, or counted: `css-1x2y3z`, `Price__a8Xk2`, `item-48213`. */
function isGenerated(name: string): boolean {
  return name
    .split(/[-_\s:]+/)
    .some((part) => /\d{3,}/.test(part) || (part.length >= 5 && /\d/.test(part) && /[a-z]/i.test(part)));
}

/** `dt:contains("Weight") + dd`: what stands beside its name. */
function labelledBy({ elements }: PageFacts, index: number): Selector | null {
  const { tag, before } = elements[index]!;
  const label = before === -1 ? undefined : elements[before];
  if (!label?.text || !LABEL_TAGS.has(label.tag)) return null;
  const { text, tag: labelTag } = label;
  if (text.length > LABEL_LENGTH_MAX || !/^[\p{L}\p{N} .:/-]+$/u.test(text)) return null;
  const first = elements.findIndex((one) => {
    const other = one.before === -1 ? undefined : elements[one.before];
    return one.tag === tag && other?.tag === labelTag && other.text?.includes(text) === true;
  });
  return first === index ? { css: `${labelTag}:contains("${text}") + ${tag}`, cost: COST.label } : null;
}

/** By tags and numbers alone, from the nearest element that is called something: always there, seldom lasting. */
function placeOf({ elements }: PageFacts, index: number): Selector {
  const steps: string[] = [];
  for (let at = index; at !== -1; at = elements[at]!.parent) {
    const { tag, nth, attributes } = elements[at]!;
    const id = attributes.get('id') ?? '';
    if (
      at !== index &&
      IDENTIFIER.test(id) &&
      elements.findIndex((one) => one.attributes.get('id') === id) === at
    ) {
      steps.push(`#${id}`);
      break;
    }
    steps.push(elements[at]!.parent === -1 ? tag : `${tag}:nth-of-type(${nth})`);
  }
  return { css: steps.reverse().join(' > '), cost: COST.place + steps.length };
}
