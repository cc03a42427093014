import { type BuildOptions, build } from 'esbuild';
import { writeLicenses } from './write-licenses.ts';

/** Some packages are still written for CommonJS. */
export const PRELUDE =
  "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);";

/** Modules for every Node that is supported, whose shared parts are files of their own; licences go into the folder. */
export async function bundleForNode(
  options: BuildOptions & Required<Pick<BuildOptions, 'entryPoints' | 'outdir' | 'chunkNames'>>,
  licensesFolder: string,
): Promise<void> {
  const { metafile } = await build({
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    legalComments: 'none',
    banner: { js: PRELUDE },
    logLevel: 'warning',
    ...options,
    metafile: true,
  });
  writeLicenses(metafile, licensesFolder);
}
