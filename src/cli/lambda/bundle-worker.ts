import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';
import { messageOf, SeineError } from '../../core/errors.ts';

interface BundleOptions {
  /** Programs by the name of their file, as paths below `src` without an ending. */
  entries: Record<string, string>;
  /** Packages whose use fails with the reason. */
  absent: string[];
  /** Packages that are beside the bundle. */
  external?: string[];
  /** For that reason: what they are not part of. */
  what: 'zip' | 'image';
}

/** Of this package, which may itself be in another package's node_modules. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Some packages are still written for CommonJS; `__dirname` is where header-generator looks for its data. */
const PRELUDE =
  "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url),__dirname=import.meta.dirname,__filename=import.meta.filename;";

/** The worker in few files: each program, what it loads later in files of its own, and data. */
export async function bundleWorker(options: BundleOptions): Promise<Record<string, Uint8Array>> {
  return { ...(await bundle(options)), ...dataOfUserAgents() };
}

async function bundle({
  entries,
  absent,
  external = [],
  what,
}: BundleOptions): Promise<Record<string, Uint8Array>> {
  const { build } = await import('esbuild');
  const here = fileURLToPath(import.meta.url);
  const ending = here.endsWith('.ts') ? '.ts' : '.js';
  const paths = Object.entries(entries).map(([name, path]) => [
    name,
    join(dirname(here), '../..', path + ending),
  ]);
  try {
    const { outputFiles } = await build({
      absWorkingDir: ROOT,
      entryPoints: Object.fromEntries(paths),
      bundle: true,
      write: false,
      outdir: '/',
      // What few jobs need is loaded only then: a cold start takes 130 ms instead of 310.
      splitting: true,
      chunkNames: 'part-[hash]',
      outExtension: { '.js': '.mjs' },
      platform: 'node',
      format: 'esm',
      target: 'node24',
      // Nothing is minified: where two assertions become one statement, Node throws a TypeError when one fails, and those of
      // undici tell a response that is no HTTP.
      legalComments: 'none',
      banner: { js: PRELUDE },
      external,
      plugins: [...(absent.length > 0 ? [without(absent, what)] : []), withNames(external)],
      logLevel: 'silent',
    });
    return Object.fromEntries(outputFiles.map(({ path, contents }) => [basename(path), contents]));
  } catch (error) {
    throw new SeineError(`cannot bundle the worker: ${messageOf(error)}`, {
      exit: 'internal',
      cause: error,
    });
  }
}

const without = (absent: string[], what: string): Plugin => ({
  name: 'absent',
  setup(build) {
    const filter = new RegExp(`^(${absent.join('|')})(/|$)`);
    build.onResolve({ filter }, ({ path }) => ({ path, namespace: 'absent' }));
    build.onLoad({ filter: /.*/, namespace: 'absent' }, ({ path }) => ({
      contents: `throw new Error(${JSON.stringify(`${path} is not part of the ${what} for Lambda`)});`,
      loader: 'js',
    }));
  },
});

/**
 * A package that is loaded later and is written for CommonJS, like the SDK, would be without the names of what it
 * exports: esbuild cannot know them, so they are looked up here.
 */
const withNames = (external: string[]): Plugin => ({
  name: 'names',
  setup(build) {
    build.onResolve({ filter: /^[@\w]/ }, ({ path, kind, importer, resolveDir }) =>
      kind === 'dynamic-import' && !path.startsWith('node:') && !external.includes(path) && isOurs(importer)
        ? { path, namespace: 'named', pluginData: resolveDir }
        : null,
    );
    build.onLoad({ filter: /.*/, namespace: 'named' }, async ({ path, pluginData }) => {
      const names = Object.keys(await import(path)).filter(
        (name) => name !== 'default' && /^[A-Za-z_$][\w$]*$/.test(name),
      );
      return {
        contents: `export { ${names.join(', ')} } from ${JSON.stringify(path)};`,
        resolveDir: pluginData,
        loader: 'js',
      };
    });
  },
});

function isOurs(path: string): boolean {
  const [first] = relative(ROOT, path).split(sep);
  return first === 'src' || first === 'dist';
}

function dataOfUserAgents(): Record<string, Uint8Array> {
  const dir = join(dirname(createRequire(import.meta.url).resolve('header-generator')), 'data_files');
  return Object.fromEntries(
    readdirSync(dir).map((name) => [`data_files/${name}`, readFileSync(join(dir, name))]),
  );
}
