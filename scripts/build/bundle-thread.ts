import { rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Plugin } from 'esbuild';
import { bundleForNode } from './bundle-for-node.ts';

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

/** Packages that few jobs need, such as Playwright and the SDK of AWS, are loaded later, from where they are. */
const laterPackages: Plugin = {
  name: 'later packages',
  setup({ onResolve }) {
    // Those of scripts/build/bundle-packages.ts.
    onResolve({ filter: /-(sdk|packages)\.js$/ }, ({ path, resolveDir }) => ({
      path: relative(OUT, join(resolveDir, path)),
      external: true,
    }));
    onResolve({ filter: /^[@\w]/ }, ({ path, kind }) =>
      kind === 'dynamic-import' ? { path, external: true } : null,
    );
  },
};

/**
 * Pages are fetched by HTTP/1.1. Undici does without Node's module for HTTP/2 where there is none; where there is one it loads
 * it at once, and each thread compiled it for 6 ms.
 */
const withoutHttp2: Plugin = {
  name: 'without HTTP/2',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:http2$/ }, () => ({ path: 'http2', namespace: 'absent' }));
    onLoad({ filter: /./, namespace: 'absent' }, () => ({ contents: 'throw new Error("not used here");' }));
  },
};

rmSync(OUT, { recursive: true, force: true });
await bundleForNode(
  {
    entryPoints: { thread: 'dist/entry/thread.js', ...PROGRAMS },
    outdir: OUT,
    outExtension: { '.js': '.mjs' },
    chunkNames: 'part-[hash]',
    plugins: [laterPackages, withoutHttp2],
  },
  OUT,
);
