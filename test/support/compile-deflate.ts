import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Compiles native/deflate.ts to WebAssembly. */
export async function compileDeflate(): Promise<Uint8Array> {
  const { default: asc } = await import('assemblyscript/asc');
  const source = readFileSync(join(import.meta.dirname, '../../native/deflate.ts'), 'utf8');
  let output: Uint8Array | null = null;
  const { error, stderr } = await asc.main(
    [
      'deflate.ts',
      '-O3',
      '--noAssert',
      '--runtime',
      'stub',
      '--memoryBase',
      '65536',
      '--initialMemory',
      '32',
      '-o',
      'deflate.wasm',
    ],
    {
      readFile: (name) => (name === 'deflate.ts' ? source : null),
      writeFile: (name, contents) => {
        if (name === 'deflate.wasm') output = contents as Uint8Array;
      },
      listFiles: () => [],
    },
  );
  if (error || !output) throw new Error(`native/deflate.ts does not compile: ${stderr.toString()}`);
  return output;
}
