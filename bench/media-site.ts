/** Pictures to download: bytes that do not compress and begin like JPEG, some of them the same under another name. */
import { linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const PICTURE_BYTES = 80 * 1024;
/** Every tenth URL leads to bytes that another one has too. */
const DUPLICATE_EVERY = 10;

interface MediaSite {
  /** Paths, from the root of the site. */
  paths: string[];
  distinct: number;
}

/** A quick generator (xorshift): what counts is only that no two pictures are alike. */
function fill(picture: Int32Array, seed: number): void {
  let state = (seed + 1) * 2_654_435_761;
  for (let at = 0; at < picture.length; at++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    picture[at] = state;
  }
}

export function writeMediaSite(folder: string, count: number): MediaSite {
  const words = new Int32Array(PICTURE_BYTES / 4);
  const bytes = Buffer.from(words.buffer);
  const paths: string[] = [];
  let distinct = 0;
  for (let index = 0; index < count; index++) {
    const name = `${index % 64}/${index}.jpg`;
    if (index < 64) mkdirSync(join(folder, String(index)));
    const isDuplicate = index % DUPLICATE_EVERY === DUPLICATE_EVERY - 1;
    if (isDuplicate) {
      // Of half the way back, so that it has long been stored by then.
      const other = Math.floor(index / 2) - (Math.floor(index / 2) % DUPLICATE_EVERY);
      linkSync(join(folder, paths[other]!), join(folder, name));
    } else {
      fill(words, index);
      bytes.set([0xff, 0xd8, 0xff, 0xe0]);
      writeFileSync(join(folder, name), bytes);
      distinct++;
    }
    paths.push(name);
  }
  return { paths, distinct };
}
