import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';

const PACKAGE = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;

/** A bundle has copies of other people's packages: their licences go with it, in `licenses.txt`. */
export function writeLicenses({ inputs }: Metafile, folder: string): void {
  const packages = new Set(Object.keys(inputs).flatMap((path) => PACKAGE.exec(path)?.[0] ?? []));
  const texts = [...packages].sort().map((path) => {
    const { name, version, license } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
    const file = readdirSync(path).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
    const text = file === undefined ? '' : `\n\n${readFileSync(join(path, file), 'utf8').trim()}`;
    return `${name} ${version}, ${license}${text}`;
  });
  writeFileSync(join(folder, 'licenses.txt'), `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`);
}
