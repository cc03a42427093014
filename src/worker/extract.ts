import { hash } from 'node:crypto';
import { compile, selectAll, selectOne } from 'css-select';
import type { Document, Element } from 'domhandler';
import { messageOf, SeineError } from '../core/errors.ts';
import type { FieldSpec } from '../core/job.ts';
import { LIMITS } from '../core/limits.ts';
import type { RecordDraft } from '../core/outcome.ts';
import { type Page, textOfElement } from './page.ts';

type Node = Document | Element;
type FieldReader = (document: Document) => string | string[] | null;
export type Extractor = (page: Page) => Record<string, unknown> | null;

/** Compiles the fields of a route once. Throws a SeineError that names the field when a selector is wrong. */
export function compileFields(fields: Record<string, FieldSpec>): Extractor {
  const readers = Object.entries(fields).map(([name, spec]) => [name, compileField(name, spec)] as const);
  return (page) => {
    const { document } = page;
    const record: Record<string, unknown> = {};
    let found = false;
    for (const [name, read] of readers) {
      const value = read(document);
      record[name] = value;
      found ||= value !== null && value.length > 0;
    }
    return found ? record : null;
  };
}

function compileField(name: string, spec: FieldSpec): FieldReader {
  const { css, attr, all } = typeof spec === 'string' ? parseShorthand(spec) : spec;
  let query: ReturnType<typeof compile<Node, Element>>;
  try {
    query = compile<Node, Element>(css);
  } catch (error) {
    throw new SeineError(`the selector of field '${name}' is not valid CSS: ${css} (${messageOf(error)})`);
  }
  const read = (element: Element) =>
    attr === undefined ? textOfElement(element) : (element.attribs[attr] ?? null);
  if (all)
    return (document) =>
      selectAll<Node, Element>(query, document)
        .map(read)
        .filter((value) => value !== null);
  return (document) => {
    const element = selectOne<Node, Element>(query, document);
    return element ? read(element) : null;
  };
}

/** `img.main@src`: the attribute comes after the last @ that is not inside brackets. */
function parseShorthand(text: string): { css: string; attr: string | undefined; all: boolean } {
  const match = /^(.+)@([\w:-]+)$/.exec(text);
  return match
    ? { css: match[1]!.trim(), attr: match[2], all: false }
    : { css: text, attr: undefined, all: false };
}

/** What a handler or selectors returned, as records ready to store. */
export function toDrafts(url: string, result: unknown): RecordDraft[] {
  if (result === null || result === undefined) return [];
  const list = Array.isArray(result) ? result : [result];
  if (list.length > LIMITS.recordsPerTaskMax) {
    throw new Error(`a page gave ${list.length} records, the limit is ${LIMITS.recordsPerTaskMax}`);
  }
  return list.map((data, index) => {
    if (typeof data !== 'object' || data === null || Array.isArray(data)) {
      throw new Error(`a record must be an object, got ${data === null ? 'null' : typeof data}`);
    }
    const json = JSON.stringify(data);
    if (json.length > LIMITS.recordBytesMax)
      throw new Error(`a record has ${json.length} bytes, the limit is ${LIMITS.recordBytesMax}`);
    return { key: Array.isArray(result) ? `${url}#${index}` : url, json, hash: hash('sha256', json) };
  });
}
