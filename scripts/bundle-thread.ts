import { rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { writeLicenses } from './write-licenses.ts';

/**
 * Bundles what a worker thread runs into dist/thread, where `threadEntries` looks for it; run it after the compiler.
 * Nothing is minified: stacks can be read, and so can the source that Node looks at when an assertion of undici fails. Where
 * two of them are one statement it throws a TypeError instead of an AssertionError.
 */

const OUT = 'dist/thread';

/** Programs of their own that a browser needs beside it, see `siblingFile`. */
const PROGRAMS = {
  'watchdog-main': 'dist/fetch/browser/process/watchdog-main.js',
  'unpack-main': 'dist/fetch/browser/process/unpack-main.js',
};

/** Some packages are still written for CommonJS. */
const PRELUDE =
  "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);";

/** Packages that few jobs need, such as Playwright and the SDK of AWS, are loaded later, from where they are. */
const laterPackages: Plugin = {
  name: 'later packages',
  setup({ onResolve }) {
    // Those of scripts/bundle-packages.ts.
    onResolve({ filter: /-(sdk|packages)\.js$/ }, ({ path, resolveDir }) => ({
      path: relative(OUT, join(resolveDir, path)),
      external: true,
    }));
    onResolve({ filter: /^[@\w]/ }, ({ path, kind }) =>
      kind === 'dynamic-import' ? { path, external: true } : null,
    );
  },
};

rmSync(OUT, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: { thread: 'dist/entry/thread.js', ...PROGRAMS },
  outdir: OUT,
  outExtension: { '.js': '.mjs' },
  chunkNames: 'part-[hash]',
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node22',
  legalComments: 'none',
  banner: { js: PRELUDE },
  plugins: [laterPackages],
  metafile: true,
  logLevel: 'warning',
});
writeLicenses(metafile, OUT);
