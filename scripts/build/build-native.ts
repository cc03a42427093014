import { writeFileSync } from 'node:fs';
import { compileNative } from '../../test/support/compile-native.ts';

/** Writes what native/ is compiled to into src/; run it after changing something there. */
async function build(name: 'deflate' | 'md5' | 'links', constant: string, file: string): Promise<void> {
  const base64 = Buffer.from(await compileNative(name)).toString('base64');
  const lines = base64.match(/.{1,100}/g)!.map((line) => `  '${line}',`);
  writeFileSync(
    file,
    `/** native/${name}.ts, compiled; written by scripts/build/build-native.ts. */\nexport const ${constant} = [\n${lines.join('\n')}\n].join('');\n`,
  );
}

await build('deflate', 'DEFLATE_CODE', 'src/core/warc/deflate-code.ts');
await build('md5', 'MD5_CODE', 'src/core/media/md5-code.ts');
await build('links', 'LINKS_CODE', 'src/worker/native-links/links-code.ts');
