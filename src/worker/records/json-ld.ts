/** Characters of one JSON-LD block. */
export const JSON_LD_LENGTH_MAX = 1024 * 1024;
/** Objects looked at in all blocks of a page. */
const JSON_LD_NODES_MAX = 10_000;

/** Structured data in JSON-LD, as pages carry it for search engines. */

export type DataObject = Record<string, unknown>;

/** `Product.offers[0].price`: a type, then properties and places in lists. */
export interface DataPath {
  /** `*` is any type. */
  type: string;
  steps: (string | number)[];
}

/** A value, and the object it is a property of. */
export interface DataValue {
  value: unknown;
  owner: DataObject;
}

/** Objects of one `@id` that are looked through; honest pages have two or three. */
const SAME_ID_MAX = 16;
const PATH = /^[^.[\]]+(?:\.[^.[\]]+|\[\d{1,6}\])*$/;

/** Null when it is no path. */
export function parseDataPath(text: string): DataPath | null {
  if (!PATH.test(text)) return null;
  const [type, ...steps] = text.replace(/\[(\d+)\]/g, '.$1').split('.');
  return { type: type!, steps: steps.map((step) => (/^\d+$/.test(step) ? Number(step) : step)) };
}

/** All objects of a page's blocks: those at the top and in `@graph` first, then those inside others. */
export class LinkedData {
  readonly #objects: DataObject[] = [];
  #byId: Map<string, DataObject[]> | null = null;

  constructor(blocks: readonly string[]) {
    let level: unknown[] = blocks.map(parseBlock);
    while (level.length > 0) level = this.#addLevel(level);
  }

  /** Values at the path, in the order of the objects of its type. */
  *valuesAt({ type, steps }: DataPath): Generator<DataValue> {
    for (const object of this.#objects) {
      if (type === '*' || hasType(object, type)) yield* this.#follow(object, object, steps, 0);
    }
  }

  #addLevel(level: unknown[]): unknown[] {
    const below: unknown[] = [];
    // Lists are opened in place, so that their objects count as being at this level.
    const waiting = level.toReversed();
    while (waiting.length > 0) {
      const value = waiting.pop();
      if (Array.isArray(value)) {
        for (let index = Math.min(value.length, JSON_LD_NODES_MAX) - 1; index >= 0; index--)
          waiting.push(value[index]);
      } else if (isObject(value)) {
        if (this.#objects.length >= JSON_LD_NODES_MAX) return [];
        this.#objects.push(value);
        for (const [name, inner] of Object.entries(value)) {
          if (name === '@graph') waiting.push(inner);
          else if (typeof inner === 'object' && inner !== null) below.push(inner);
        }
      }
    }
    return below;
  }

  /** A property of a list is that of each of its items. */
  *#follow(
    value: unknown,
    owner: DataObject,
    steps: readonly (string | number)[],
    at: number,
  ): Generator<DataValue> {
    const step = steps[at];
    if (typeof step === 'number') {
      // One thing is written like a list of one.
      const item = Array.isArray(value) ? value[step] : step === 0 ? value : undefined;
      yield* this.#follow(item, owner, steps, at + 1);
    } else if (Array.isArray(value)) {
      // Lists in lists are not JSON-LD, and must not decide how deep this goes.
      for (const item of value.flat()) if (!Array.isArray(item)) yield* this.#follow(item, owner, steps, at);
    } else if (step === undefined) {
      if (value !== undefined && value !== null) yield { value, owner };
    } else if (isObject(value)) {
      const holder = this.#holderOf(value, step);
      if (holder) yield* this.#follow(holder[step], holder, steps, at + 1);
    }
  }

  /** The object itself, or the one that its `@id` refers to. */
  #holderOf(object: DataObject, property: string): DataObject | undefined {
    if (Object.hasOwn(object, property)) return object;
    const id = object['@id'];
    if (typeof id !== 'string') return undefined;
    this.#byId ??= Map.groupBy(
      this.#objects.filter((other) => typeof other['@id'] === 'string'),
      (other) => other['@id'] as string,
    );
    return this.#byId
      .get(id)
      ?.slice(0, SAME_ID_MAX)
      .find((other) => Object.hasOwn(other, property));
  }
}

function isObject(value: unknown): value is DataObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Types are also written as `https://schema.org/Product` and `schema:Product`. */
function hasType(object: DataObject, type: string): boolean {
  const types = object['@type'];
  const isIt = (name: unknown) =>
    typeof name === 'string' && name.endsWith(type) && /^$|[/#:]$/.test(name.slice(0, -type.length));
  return Array.isArray(types) ? types.some(isIt) : isIt(types);
}

/** Undefined for what is no JSON. Line breaks inside texts and comments around the whole are common mistakes. */
function parseBlock(text: string): unknown {
  if (text.length > JSON_LD_LENGTH_MAX) return undefined;
  return parseJson(text) ?? parseJson(mend(text));
}

function mend(text: string): string {
  return text
    .replace(/[\u0000-\u001f]+/g, ' ')
    .trim()
    .replace(/^(?:<!--|(?:\/\/|\/\*)? ?<!\[CDATA\[ ?(?:\*\/)?)/, '')
    .replace(/(?:-->|(?:\/\/|\/\*)? ?\]\]> ?(?:\*\/)?)$/, '')
    .trim()
    .replace(/;$/, '');
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
