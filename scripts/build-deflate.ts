import { writeFileSync } from 'node:fs';
import { compileDeflate } from '../test/support/compile-deflate.ts';

/** Writes src/core/warc/deflate-code.ts from native/deflate.ts; run it after changing the latter. */
const base64 = Buffer.from(await compileDeflate()).toString('base64');
const lines = base64.match(/.{1,100}/g)!.map((line) => `  '${line}',`);
writeFileSync(
  'src/core/warc/deflate-code.ts',
  `/** native/deflate.ts, compiled; written by scripts/build-deflate.ts. */\nexport const DEFLATE_CODE = [\n${lines.join('\n')}\n].join('');\n`,
);
