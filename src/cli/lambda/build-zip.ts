import { hash } from 'node:crypto';
import { SeineError } from '../../core/errors.ts';
import { bundleWorker } from './bundle-worker.ts';

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

/** The worker as one zip: `index.mjs` with its handler, and what it loads later in files of its own. */
export async function buildLambdaZip(): Promise<LambdaZip> {
  const files = await bundleWorker({
    entries: { index: 'entry/lambda', thread: 'entry/thread' },
    absent: ABSENT,
    what: 'zip',
  });
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
