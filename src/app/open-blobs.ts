import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AWS_ITSELF, type S3Settings } from '../aws/s3/s3-client.ts';
import { isS3Url } from '../aws/s3/s3-url.ts';
import { checkFolder, openFolderBlobs, sweepAbandoned, sweepTemporary } from '../blobs/folder-blobs.ts';
import { messageOf, SeineError } from '../core/errors.ts';
import type { Logger } from '../ports/ambient.ts';
import type { Blobs } from '../ports/blobs.ts';

/** Opens what the setting `blobs` names: `s3://bucket/prefix`, `file:///path` or a path. Nothing is sent yet. */
export async function openBlobs(
  setting: string,
  { sync = false, s3 = AWS_ITSELF }: { sync?: boolean; s3?: S3Settings } = {},
): Promise<Blobs> {
  const path = folderOf(setting);
  if (path !== null) return openFolderBlobs(path, { sync });
  const { openS3Blobs } = await import('../blobs/s3-blobs.ts');
  return openS3Blobs(setting, s3);
}

/** Before a job starts: finds out whether the place can be used, and removes what dead writers left there. */
export async function prepareBlobs(
  setting: string,
  options: {
    /** The folder whose lock the caller holds; null when it holds none. */
    owned: string | null;
    s3: S3Settings | undefined;
    logger: Logger;
  },
): Promise<void> {
  const path = folderOf(setting);
  if (path !== null) {
    await checkFolder(path);
    await (options.owned !== null && path === resolve(options.owned)
      ? sweepTemporary(path)
      : sweepAbandoned(path));
    return;
  }
  const { prepareS3Blobs } = await import('../blobs/s3-blobs.ts');
  const { problem } = await prepareS3Blobs(setting, options.s3 ?? AWS_ITSELF, Date.now());
  if (problem) options.logger.warn(`cannot list unfinished uploads: ${messageOf(problem)}`);
}

/** Null when it is in S3. */
export function folderOf(setting: string): string | null {
  if (isS3Url(setting)) return null;
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(setting)) return resolve(setting);
  try {
    return fileURLToPath(setting);
  } catch (error) {
    throw new SeineError(`--blobs does not support ${setting}`, {
      hint: 'use a folder, file:///path or s3://bucket/prefix',
      cause: error,
    });
  }
}
