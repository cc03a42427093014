import { isPublicAddress } from '../../../src/core/url/address.ts';
import { makeAddressGuard } from '../../../src/core/url/address-guard.ts';
import { openFilesByScheme } from '../../../src/sources/files/files-by-scheme.ts';
import { fileSource } from '../../../src/sources/formats/file-source.ts';

/** Reads a file source to its end in a process of its own, which may have little memory, and counts its rows. */
const files = openFilesByScheme(() => Promise.reject(new Error('no S3 here')), {
  guard: makeAddressGuard(isPublicAddress, false),
  jobAllowsPrivate: false,
});
let rows = 0;
for await (const { row } of fileSource({ file: process.argv[2]!, priority: 0 }, files.of).rows(null))
  if ('url' in row) rows++;
await files.close();
process.stdout.write(JSON.stringify({ rows }));
