import { readFileSync, writeFileSync } from 'node:fs';

/** Puts text between the two markers of that name in a document. */
export function replaceBetween(path: string, name: string, text: string): void {
  const before = readFileSync(path, 'utf8');
  const pattern = new RegExp(`(<!-- ${name}:begin[^>]*-->)[\\s\\S]*?(<!-- ${name}:end -->)`);
  if (!pattern.test(before)) throw new Error(`${path} has no place for ${name}`);
  writeFileSync(
    path,
    before.replace(pattern, (_all, begin: string, end: string) => `${begin}\n${text}\n${end}`),
  );
}
