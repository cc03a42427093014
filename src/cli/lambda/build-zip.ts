import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';
import { messageOf, SeineError } from '../../core/errors.ts';

export interface LambdaZip {
  bytes: Uint8Array;
  /** As Lambda names it: base64. */
  sha256: string;
  files: string[];
}

/** Beyond this Lambda takes noticeably longer to fetch it for each new environment. */
export const ZIP_BYTES_MAX = 10 * 1024 ** 2;

/**
 * Left out: impit is native code, of one platform and 5 MB packed, and browsers are far too large for a zip. What
 * asks for them fails with the reason.
 */
const ABSENT = ['impit', 'playwright-core', '@sparticuz/chromium'];

/** Of this package, which may itself be in somebody's node_modules. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Some packages are still written for CommonJS; `__dirname` is where header-generator looks for its data. */
const PRELUDE =
  "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url),__dirname=import.meta.dirname,__filename=import.meta.filename;";

/** The worker as one zip: `index.mjs` with its handler, and what it loads later in files of its own. */
export async function buildLambdaZip(): Promise<LambdaZip> {
  const files: Record<string, Uint8Array> = { ...(await bundle()), ...dataOfUserAgents() };
  const { zipSync } = await import('fflate');
  const names = Object.keys(files).sort();
  // Equal files give equal bytes, also on another day and in another time zone: Lambda then sees no change.
  const entries = names.map((name) => [name, [files[name]!, { attrs: 0o100644 << 16, os: 3 }]] as const);
  const bytes = zipSync(Object.fromEntries(entries) as Parameters<typeof zipSync>[0], {
    level: 9,
    mtime: new Date(1980, 0, 1),
  });
  if (bytes.length > ZIP_BYTES_MAX)
    throw new SeineError(`the zip has ${bytes.length} bytes, more than ${ZIP_BYTES_MAX}`, {
      exit: 'internal',
    });
  return { bytes, sha256: hash('sha256', bytes, 'base64'), files: names };
}

async function bundle(): Promise<Record<string, Uint8Array>> {
  const { build } = await import('esbuild');
  const here = fileURLToPath(import.meta.url);
  const entry = join(dirname(here), `../../entry/lambda${here.endsWith('.ts') ? '.ts' : '.js'}`);
  try {
    const { outputFiles } = await build({
      absWorkingDir: ROOT,
      entryPoints: { index: entry },
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
      minify: true,
      legalComments: 'none',
      banner: { js: PRELUDE },
      plugins: [withoutAbsent, withNames],
      logLevel: 'silent',
    });
    return Object.fromEntries(outputFiles.map(({ path, contents }) => [basename(path), contents]));
  } catch (error) {
    throw new SeineError(`the worker cannot be bundled: ${messageOf(error)}`, {
      exit: 'internal',
      cause: error,
    });
  }
}

const withoutAbsent: Plugin = {
  name: 'absent',
  setup(build) {
    const filter = new RegExp(`^(${ABSENT.join('|')})(/|$)`);
    build.onResolve({ filter }, ({ path }) => ({ path, namespace: 'absent' }));
    build.onLoad({ filter: /.*/, namespace: 'absent' }, ({ path }) => ({
      contents: `throw new Error(${JSON.stringify(`${path} is not part of the zip for Lambda`)});`,
      loader: 'js',
    }));
  },
};

/**
 * A package that is loaded later and is written for CommonJS, like the SDK, would be without the names of what it
 * exports: esbuild cannot know them, so they are looked up here.
 */
const withNames: Plugin = {
  name: 'names',
  setup(build) {
    build.onResolve({ filter: /^[@\w]/ }, ({ path, kind, importer, resolveDir }) =>
      kind === 'dynamic-import' && !path.startsWith('node:') && isOurs(importer)
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
};

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
