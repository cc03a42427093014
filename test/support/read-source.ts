import { fileSource } from '../../src/sources/file-source.ts';
import { openFilesByScheme } from '../../src/sources/files-by-scheme.ts';

/** Reads a file source to its end in a process of its own, and says what memory that took. */
const files = openFilesByScheme(() => Promise.reject(new Error('no S3 here')));
let rows = 0;
let peak = 0;
for await (const { row } of fileSource({ file: process.argv[2]!, priority: 0 }, files.of).rows(null)) {
  if ('url' in row) rows++;
  // What the system says of the highest point would be that of the parent.
  if (rows % 5_000 === 0) peak = Math.max(peak, process.memoryUsage.rss());
}
await files.close();
process.stdout.write(JSON.stringify({ rows, peakMb: peak / 2 ** 20 }));
