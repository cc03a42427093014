import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The flags that the first line of bin/seine.js gives Node: what is measured here runs under the same. */
export function nodeFlags(): string[] {
  const [first = ''] = readFileSync(join(import.meta.dirname, '../bin/seine.js'), 'utf8').split('\n');
  return first.split(' ').filter((word) => word.startsWith('--'));
}
