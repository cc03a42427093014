import { copyFileSync, mkdirSync } from 'node:fs';
import { build } from 'esbuild';
import { writeLicenses } from './write-licenses.ts';

/** Bundles the dashboard of web/ into dist/dashboard, where the server looks for it. */

const OUT = 'dist/dashboard';

mkdirSync(OUT, { recursive: true });
const { metafile } = await build({
  entryPoints: { app: 'web/main.tsx' },
  outdir: OUT,
  bundle: true,
  minify: true,
  format: 'iife',
  target: ['es2022'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
});
writeLicenses(metafile, OUT);
for (const name of ['index.html', 'icon.svg']) copyFileSync(`web/${name}`, `${OUT}/${name}`);
