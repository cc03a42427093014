import { LIMITS } from '../limits.ts';
import type { Meta } from '../model.ts';
import { isJsonDeeper } from '../values/nesting.ts';

/**
 * Messages of a stream on their way to records: the source packs some of them into a task, whose URL says which they are, and
 * a worker unpacks them. So they have what every task has: they are stored with the position in the stream, once, and
 * survive a crash.
 */

/** A message as JSON of an object, and the key of its record; null for one of its own. */
export type Message = readonly [key: string | null, json: string];

const NAME = '@messages';
const KEY_LENGTH_MAX = 2_048;

/** What becomes of a text from a stream, or why nothing does. */
export function toMessage(
  text: string,
  keyPath: string | undefined,
): { message: Message; value: unknown } | string {
  if (text.length > LIMITS.recordBytesMax)
    return `a message has ${text.length} characters, the limit is ${LIMITS.recordBytesMax}`;
  const value = parsed(text);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const json = isObject ? text : JSON.stringify({ message: value === undefined ? text : value });
  if (isJsonDeeper(json, LIMITS.dataNestingMax))
    return `a message is nested deeper than ${LIMITS.dataNestingMax} levels`;
  const key = keyPath === undefined ? null : valueAt(value, keyPath);
  if (keyPath !== undefined && key === null) return `a message has nothing at ${keyPath}`;
  return { message: [key, json], value };
}

/** A text or number inside a message; null when there is none. */
export function valueAt(value: unknown, path: string): string | null {
  let at = value;
  for (const step of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return null;
    at = Reflect.get(at, step);
  }
  if (typeof at !== 'string' && typeof at !== 'number') return null;
  const text = String(at);
  return text === '' || text.length > KEY_LENGTH_MAX ? null : text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function packMessages(messages: readonly Message[]): Meta {
  return { [NAME]: messages };
}

/** None when the task carries none. */
export function unpackMessages(meta: Meta | null): Message[] {
  const list: unknown = meta && Object.hasOwn(meta, NAME) ? meta[NAME] : null;
  if (!Array.isArray(list)) return [];
  return list.filter(isMessage);
}

function isMessage(value: unknown): value is Message {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [key, json] = value as unknown[];
  return (key === null || typeof key === 'string') && typeof json === 'string';
}

/** The task of messages, by their numbers. Without the query of the address, which may hold a secret. */
export function messagesUrl(address: string, first: number, last: number): string {
  const url = new URL(address.replaceAll('{last}', ''));
  const scheme = url.protocol === 'wss:' ? 'https:' : 'http:';
  return `${scheme}//${url.host}${url.pathname}?messages=${first}-${last}`;
}
