import { findNginx, type Origin, openNginx } from './origin-nginx.ts';
import { openNodeOrigin } from './origin-node.ts';
import type { Scratch } from './scratch.ts';

/** Serves a folder from memory until the benchmark ends: with nginx where it is, or can be had. */
export async function openOrigin(scratch: Scratch, site: string, workers: number): Promise<Origin> {
  const nginx = findNginx(true);
  if (nginx === undefined)
    process.stderr.write('nginx not found: the built-in origin is used, which takes more CPU per page\n');
  const origin =
    nginx === undefined
      ? await openNodeOrigin(site)
      : await openNginx(nginx, site, scratch.memoryFolder('nginx'), workers);
  scratch.onEnd(() => origin.close());
  return origin;
}
