import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Inputs that were once handled badly, a file each: `test/integration/fuzz.test.ts` reads all of them. */
const FOLDER = fileURLToPath(new URL('../test/fixtures/fuzz/', import.meta.url));

interface Fixture {
  name: string;
  input: Buffer;
}

export function fixturesOf(target: string): Fixture[] {
  const folder = join(FOLDER, target);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .map((name) => ({ name, input: readFileSync(join(folder, name)) }));
}

/** Returns the file's path. */
export function keepFixture(target: string, input: Buffer): string {
  const folder = join(FOLDER, target);
  mkdirSync(folder, { recursive: true });
  const path = join(folder, createHash('sha256').update(input).digest('hex').slice(0, 12));
  writeFileSync(path, input);
  return path;
}
