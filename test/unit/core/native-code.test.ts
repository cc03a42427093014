import { expect, test } from 'vitest';
import { MD5_CODE } from '../../../src/core/media/md5-code.ts';
import { DEFLATE_CODE } from '../../../src/core/warc/deflate-code.ts';
import { LINKS_CODE } from '../../../src/worker/native-links/links-code.ts';
import { compileNative } from '../../support/compile-native.ts';

/** In one file, as loading the compiler takes longer than compiling. */
test.each([
  ['deflate', DEFLATE_CODE],
  ['md5', MD5_CODE],
  ['links', LINKS_CODE],
] as const)('the code of %s is what its source compiles to', async (name, code) => {
  expect(Buffer.from(await compileNative(name)).toString('base64')).toBe(code);
});
