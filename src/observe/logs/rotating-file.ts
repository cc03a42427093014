import { appendFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { SeineError } from '../../core/errors.ts';
import { PRIVATE_FILE } from '../../core/file-modes.ts';

interface RotationOptions {
  bytesMax?: number;
  /** Former files that are kept, besides the one that is written. */
  kept?: number;
  /** Where lines go that the file cannot take, as on a full disk. */
  elsewhere?: (text: string) => void;
}

const BYTES_MAX = 10_000_000;
const KEPT = 5;

/**
 * A log that never grows beyond a bound: when it is full it becomes `.1`, the one before `.2`, and so on. Lines are written
 * at once, so that the last one before a crash is there.
 */
export function openRotatingFile(
  path: string,
  { bytesMax = BYTES_MAX, kept = KEPT, elsewhere = () => {} }: RotationOptions = {},
): (text: string) => void {
  const append = (text: string) => appendFileSync(path, text, { mode: PRIVATE_FILE });
  try {
    append('');
  } catch (error) {
    throw new SeineError(`cannot write the log file ${path} (${(error as NodeJS.ErrnoException).code})`, {
      hint: 'correct SEINE_LOG_FILE',
    });
  }
  let bytes = statSync(path).size;
  return (text) => {
    const size = Buffer.byteLength(text);
    try {
      if (bytes > 0 && bytes + size > bytesMax) {
        rotate(path, kept);
        bytes = 0;
      }
      append(text);
      bytes += size;
    } catch {
      elsewhere(text);
    }
  };
}

function rotate(path: string, kept: number): void {
  rmSync(`${path}.${kept}`, { force: true });
  for (let number = kept - 1; number >= 1; number--) move(`${path}.${number}`, `${path}.${number + 1}`);
  move(path, `${path}.1`);
}

function move(from: string, to: string): void {
  if (statSync(from, { throwIfNoEntry: false })) renameSync(from, to);
}
