import { readFileSync, rmSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import type { Plugin } from 'esbuild';
import { bundleForNode } from './bundle-for-node.ts';

/**
 * Bundles the command line into dist/command, which bin/seine.js runs; run it after the compiler. To find and link its 500
 * modules was more than half of the CPU time until the first request. Each command still loads only what it needs.
 * Nothing is minified, so that stacks can be read.
 */

const DIST = 'dist';
const OUT = 'dist/command';

/**
 * All commands, and those that people wait for in bundles of their own; bin/seine.js chooses. Shared parts of many commands
 * become many small files: of 60 that `seine status` loaded, finding and linking was a quarter of its CPU.
 */
const BUNDLES = [
  { entry: 'dist/cli/main.js', out: OUT },
  { entry: 'dist/cli/report-main.js', out: `${OUT}/report` },
  { entry: 'dist/cli/run-main.js', out: `${OUT}/run` },
];

/** Packages of many small modules that nearly every command needs; all others are loaded from where they are installed. */
const PACKAGES =
  /^(?:zod|css-select|css-what|domhandler|domelementtype|domutils|dom-serializer|nth-check|boolbase|entities|htmlparser2|tldts|croner)(?:\/|$)/;

/**
 * Files that are looked for beside a module (programs of threads, pages of the dashboard) are where the compiler put them:
 * a module in the bundle still takes the address that it has there.
 */
const PRELUDE = 'const __addressOf = (path) => new URL(path, import.meta.url).href;';

const ownAddress = (out: string): Plugin => ({
  name: 'own address',
  setup({ onLoad }) {
    onLoad({ filter: /\/dist\/.*\.js$/ }, ({ path }) => {
      const contents = readFileSync(path, 'utf8');
      if (!contents.includes('import.meta')) return null;
      const place = relative(out, path).split(sep).join('/');
      return { contents: `const __address = __addressOf(${JSON.stringify(place)});\n${contents}` };
    });
  },
});

const otherPackages = (out: string): Plugin => ({
  name: 'other packages',
  setup({ onResolve }) {
    // Those of scripts/build/bundle-packages.ts.
    onResolve({ filter: /-(sdk|packages)\.js$/ }, ({ path, resolveDir }) => ({
      path: relative(out, join(resolveDir, path)).split(sep).join('/'),
      external: true,
    }));
    onResolve({ filter: /^[@\w]/ }, ({ path, kind, importer }) =>
      kind === 'entry-point' || PACKAGES.test(path) || !importer.startsWith(resolve(DIST))
        ? null
        : { path, external: true },
    );
  },
});

rmSync(OUT, { recursive: true, force: true });
for (const { entry, out } of BUNDLES)
  await bundleForNode(
    {
      entryPoints: { main: entry },
      outdir: out,
      outExtension: { '.js': '.mjs' },
      chunkNames: 'part-[hash]',
      banner: { js: PRELUDE },
      define: { 'import.meta.url': '__address' },
      plugins: [ownAddress(out), otherPackages(out)],
    },
    out,
  );
