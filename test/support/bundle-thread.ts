import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Plugin as BundlePlugin, build, type OutputFile } from 'esbuild';
import type { Plugin } from 'vitest/config';
import { PRELUDE } from '../../scripts/build/bundle-for-node.ts';

const ROOT = join(import.meta.dirname, '../..');
/**
 * Below node_modules, so that what is thrown in it is not taken for code of a job. Always the same, as Vitest keeps files
 * in which it stands from run to run.
 */
const OUT = join(ROOT, 'node_modules/.cache/seine-thread');
const BUNDLE = join(OUT, 'thread.mjs');
/** Who starts threads in a process of the tests. */
const STARTERS = ['src/app/thread-entries.ts', 'test/support/fleet/bullmq-fleet.ts'];
const ENTRY = /new URL\('[./]+(?:src)?\/entry\/thread\.ts', import\.meta\.url\)/;
/** Loaded by every thread, in fifty files. Others are found in node_modules, when they are needed. */
const INSIDE = [
  ...['undici', 'htmlparser2', 'css-select', 'css-what', 'nth-check', 'boolbase', 'domhandler', 'domutils'],
  ...['dom-serializer', 'domelementtype', 'entities', 'tldts', 'tldts-core'],
];

/**
 * A thread loads 190 files, which is most of what a small run costs. Those that runs in a process of the tests start load
 * the same sources from one file, which takes half the time. Commands in processes of their own, and the tests of threads,
 * load them as they are.
 */
export function threadsFromOneFile(): Plugin {
  return {
    name: 'threads-from-one-file',
    enforce: 'pre',
    async configResolved() {
      const { outputFiles } = await build({
        absWorkingDir: ROOT,
        entryPoints: ['src/entry/thread.ts'],
        outdir: OUT,
        write: false,
        bundle: true,
        splitting: true,
        outExtension: { '.js': '.mjs' },
        platform: 'node',
        format: 'esm',
        target: 'node24',
        banner: { js: PRELUDE },
        plugins: [packagesOutside, placesOfSources],
        logLevel: 'error',
      });
      mkdirSync(OUT, { recursive: true });
      // Parts are named by what is in them; the entry that names them comes last, and at once.
      for (const { path, contents } of outputFiles.toSorted(entryLast)) {
        writeFileSync(`${path}.${process.pid}`, contents);
        renameSync(`${path}.${process.pid}`, path);
      }
      removeOld();
    },
    transform(code, id) {
      if (!STARTERS.includes(relative(ROOT, id))) return null;
      if (!ENTRY.test(code)) throw new Error(`${id} starts no thread any more: see ${import.meta.filename}`);
      return code.replace(ENTRY, `new URL(${JSON.stringify(pathToFileURL(BUNDLE).href)})`);
    },
  };
}

const DAY_MS = 24 * 60 * 60_000;

/** Parts of sources that were changed since. */
function removeOld(): void {
  for (const name of readdirSync(OUT)) {
    const path = join(OUT, name);
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > DAY_MS) rmSync(path, { force: true });
  }
}

const entryLast = (one: OutputFile, other: OutputFile) =>
  Number(one.path === BUNDLE) - Number(other.path === BUNDLE);

const packagesOutside: BundlePlugin = {
  name: 'packages-outside',
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
      const name = path.split('/', path.startsWith('@') ? 2 : 1).join('/');
      return kind === 'entry-point' || INSIDE.includes(name) ? null : { path, external: true };
    });
  },
};

/** Files that a source finds beside itself are beside the source. */
const placesOfSources: BundlePlugin = {
  name: 'places-of-sources',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll(
        'import.meta.url',
        JSON.stringify(pathToFileURL(path).href),
      ),
      loader: 'ts',
    }));
  },
};
