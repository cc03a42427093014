import type { Random } from './random.ts';

/**
 * One thing that reads what others wrote. An input is bytes, so that it can be kept as a file; whether it is handled
 * well depends on nothing but them.
 */
export interface Target {
  /** An input, from chance alone. */
  generate(random: Random): Buffer;
  /** Throws when the input is not handled as it should be. */
  check(input: Buffer): void | Promise<void>;
  close?(): Promise<void>;
}

/** What a check found; anything else that is thrown was not expected by the check either. */
class Finding extends Error {
  override readonly name = 'Finding';
}

/** Both as JSON: what is compared is what would be stored or sent. */
export function mustEqual(found: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Finding(`${what}: ${shorten(a)} instead of ${shorten(b)}`);
}

export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Finding(what);
}

const shorten = (text: string | undefined) =>
  text === undefined || text.length <= 300
    ? String(text)
    : `${text.slice(0, 300)}… (${text.length} characters)`;
