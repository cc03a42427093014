import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Pages of 64 KiB that each of them works in. */
const MEMORY_PAGES = { deflate: 32, md5: 3, links: 155 };

/** Compiles a file of native/ to WebAssembly. */
export async function compileNative(name: keyof typeof MEMORY_PAGES): Promise<Uint8Array> {
  const { default: asc } = await import('assemblyscript/asc');
  const source = readFileSync(join(import.meta.dirname, `../../native/${name}.ts`), 'utf8');
  let output: Uint8Array | null = null;
  const { error, stderr } = await asc.main(
    [
      `${name}.ts`,
      '-O3',
      '--enable',
      'simd',
      '--enable',
      'bulk-memory',
      '--noAssert',
      '--runtime',
      'stub',
      '--memoryBase',
      '65536',
      '--initialMemory',
      String(MEMORY_PAGES[name]),
      '-o',
      `${name}.wasm`,
    ],
    {
      readFile: (file) => (file === `${name}.ts` ? source : null),
      writeFile: (file, contents) => {
        if (file === `${name}.wasm`) output = contents as Uint8Array;
      },
      listFiles: () => [],
    },
  );
  if (error || !output) throw new Error(`native/${name}.ts does not compile: ${stderr.toString()}`);
  return output;
}
