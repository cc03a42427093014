/**
 * Names that come from a page, a file or a job are never looked up in, or assigned to, a plain object: `constructor` is
 * in every one of them, and `__proto__` sets something else.
 */

/** Assigns like `object[name] = value`, whatever the name. */
export function setOwn(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  else object[name] = value;
}

/** What the object itself has under that name. */
export function getOwn<T>(object: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}
