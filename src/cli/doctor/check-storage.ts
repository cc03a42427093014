import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { openFolder } from '../../app/folder.ts';
import { folderOf, openBlobs } from '../../app/open-blobs.ts';
import { S3Bucket } from '../../aws/s3/s3-bucket.ts';
import { AWS_ITSELF } from '../../aws/s3/s3-client.ts';
import { isS3Url, parseS3Url } from '../../aws/s3/s3-url.ts';
import { messageOf, SeineError } from '../../core/errors.ts';
import type { Blobs } from '../../ports/blobs.ts';
import { isFolderLocked } from '../../store/sqlite/connection/folder-lock.ts';
import type { Context } from '../context.ts';
import type { Finding } from './check.ts';

/** The folder, with its database when that is where jobs are kept. */
export async function checkFolder({ settings }: Context): Promise<Finding> {
  const dir = resolve(settings.dir);
  const existed = existsSync(dir);
  const { store: _, blobs: __, ...own } = settings;
  const folder = await openFolder(settings.store ? { ...own, dir } : settings, { create: true });
  try {
    if (!settings.blobs) await passProbe(folder.blobs);
  } finally {
    await folder.close();
  }
  const what = [...(settings.store ? [] : ['database']), ...(settings.blobs ? [] : ['files'])].join(' and ');
  const written = what === '' ? '' : `, ${what} can be written`;
  const busy = isFolderLocked(dir) ? ', a coordinator is running' : '';
  return { detail: `${dir} ${existed ? 'opens' : 'was created'}${written}${busy}` };
}

/** Writes the mark of a running coordinator for no job, and removes it. */
export async function checkStore({ settings }: Context, shown: string): Promise<Finding> {
  const folder = await openFolder(settings, { create: true });
  try {
    const [newest] = await folder.store.jobs.list(1);
    await folder.store.jobs.join(0);
    await folder.store.jobs.leave(0);
    const jobs = newest ? `the newest job is ${newest.name}-${newest.run}` : 'no jobs yet';
    return { detail: `${shown} can be read and written, ${jobs}` };
  } finally {
    await folder.close();
  }
}

/** Everything that a job does there, with a few bytes. */
export async function checkBlobs({ settings }: Context, setting: string): Promise<Finding> {
  const blobs = await openBlobs(setting, settings.s3 ? { s3: settings.s3 } : {});
  try {
    await passProbe(blobs);
  } finally {
    await blobs.close();
  }
  if (isS3Url(setting)) return checkUploads(setting, settings);
  return { detail: `${folderOf(setting)} can be written, read and deleted from` };
}

async function passProbe(blobs: Blobs): Promise<void> {
  const key = `doctor/${randomUUID()}`;
  const bytes = Buffer.from('seine');
  await blobs.put(key, bytes);
  try {
    if (!(await blobs.read(key))?.equals(bytes))
      throw new SeineError(`data written to ${blobs.locate(key)} cannot be read back`, {
        hint: 'check whether the storage expires or discards new files',
      });
  } finally {
    await blobs.delete(key);
  }
}

/** Large objects go up in parts and are copied in place: both need rights of their own. */
async function checkUploads(url: string, settings: Context['settings']): Promise<Finding> {
  const { bucket: name, key: path } = parseS3Url(url);
  const bucket = new S3Bucket(settings.s3 ?? AWS_ITSELF, name);
  const prefix = `${path.replace(/\/+$/, '')}${path === '' ? '' : '/'}.tmp/doctor-`;
  const [from, to] = [prefix + randomUUID(), prefix + randomUUID()];
  try {
    const id = await bucket.beginUpload(from, 'doctor');
    try {
      const body = Buffer.from('seine');
      const part = { id, number: 1, body, signal: new AbortController().signal };
      await bucket.completeUpload(from, id, [await bucket.uploadPart(from, part)]);
    } catch (error) {
      await bucket.abortUpload(from, id).catch(() => {});
      throw error;
    }
    await bucket.copy(from, to, 'doctor', null);
    await Promise.all([bucket.delete(from), bucket.delete(to)]);
    const detail = `${url} can be written, also with multipart uploads, read and deleted from`;
    const problem = await listUploads(bucket, prefix);
    return problem === null ? { detail } : { detail, warning: problem };
  } finally {
    await bucket.close();
  }
}

/** Not every store lists uploads, and not every role may. */
async function listUploads(bucket: S3Bucket, prefix: string): Promise<string | null> {
  try {
    for await (const _ of bucket.uploads(prefix)) break;
    return null;
  } catch (error) {
    return `unfinished uploads cannot be listed (${messageOf(error)}); add a lifecycle rule to the bucket that removes them`;
  }
}
