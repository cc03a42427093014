/** A strict reader of XML without a mistake in it: null for everything else, and for what only documents with a type have. */

export interface XmlElement {
  name: string;
  attributes: Map<string, string>;
  children: XmlElement[];
  /** Right inside the element, without that of its children. */
  text: string;
}

const TOKEN =
  /<!--(?:(?!--)[\s\S])*-->|<!\[CDATA\[([\s\S]*?)\]\]>|<\?[a-zA-Z][^?<>]*\?>|<(\/?)([a-zA-Z_][\w.-]*(?::[a-zA-Z_][\w.-]*)?)((?:\s+[a-zA-Z_][\w.:-]*\s*=\s*(?:"[^"<&]*"|'[^'<&]*'))*)\s*(\/?)>|([^<]+)/y;
const ATTRIBUTE = /([a-zA-Z_][\w.:-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
const ENTITIES = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
]);

export function readXml(document: string): XmlElement | null {
  const text = document.replace(/^[\uFEFF\s]+/, '').trimEnd();
  if (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/.test(text)) return null;
  const top: XmlElement = { name: '', attributes: new Map(), children: [], text: '' };
  const open = [top];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const found = TOKEN.exec(text);
    if (found === null) return null;
    const [, data, slash, name, attributes = '', empty, content] = found;
    const parent = open.at(-1)!;
    if (data !== undefined) parent.text += data;
    else if (content !== undefined) {
      const decoded = decode(content);
      if (decoded === null || content.includes(']]>')) return null;
      parent.text += decoded;
    } else if (slash === '/') {
      if (open.length === 1 || parent.name !== name || attributes !== '' || empty !== '') return null;
      open.pop();
    } else if (name !== undefined) {
      if (parent === top && top.children.length > 0) return null;
      const element: XmlElement = { name, attributes: attributesOf(attributes), children: [], text: '' };
      parent.children.push(element);
      if (empty !== '/') open.push(element);
    }
  }
  return open.length === 1 && top.text.trim() === '' ? (top.children[0] ?? null) : null;
}

function attributesOf(text: string): Map<string, string> {
  return new Map(
    [...text.matchAll(ATTRIBUTE)].map(([, name, double, single]) => [name!, double ?? single ?? '']),
  );
}

function decode(text: string): string | null {
  let isPlain = true;
  const decoded = text.replace(/&([^;&]*);?/g, (whole, name: string) => {
    const number = /^#(\d{2,5})$/.exec(name)?.[1];
    const known = number === undefined ? ENTITIES.get(name) : String.fromCharCode(Number(number));
    if (
      known === undefined ||
      !whole.endsWith(';') ||
      (number !== undefined && !(Number(number) >= 32 && Number(number) < 0xd800))
    )
      isPlain = false;
    return known ?? '';
  });
  return isPlain ? decoded : null;
}
