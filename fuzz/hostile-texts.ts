/** Names and values that every object has, that end a line, or that a terminal or a database takes for something else. */
export const HOSTILE_TEXTS = [
  'constructor',
  '__proto__',
  'toString',
  'hasOwnProperty',
  'a\r\nb: c',
  'a\0b',
  '\ud800',
  '\u001b[31m',
  'é',
  '\u{1f600}',
  'x'.repeat(300),
] as const;
