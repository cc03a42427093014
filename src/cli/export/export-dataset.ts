import { join, resolve } from 'node:path';
import { AWS_ITSELF } from '../../aws/s3/s3-client.ts';
import { isS3Url } from '../../aws/s3/s3-url.ts';
import { requireJob } from '../../coordinator/jobs.ts';
import { type ExitName, messageOf, SeineError } from '../../core/errors.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import type { TaskRow } from '../../core/model.ts';
import { compilePatterns } from '../../core/url/pattern.ts';
import { makeFolder } from '../../machine/make-folder.ts';
import type { Job, Store } from '../../ports/store.ts';
import { formatAmount, formatCount } from '../../tui/format.ts';
import { type Context, print, printJson, withFolder } from '../context.ts';
import { ENCODINGS, type ImageChange, openImageReader, RESIZE_MODES } from './dataset-image.ts';
import { isStandardOutput, openDestination } from './destination.ts';
import { StoredMedia } from './stored-media.ts';
import { type DatasetOptions, writeDataset } from './write-dataset.ts';

const SHARD_SIZE = 10_000;
const QUALITY = 95;
/** Reads wait for a disk or S3 most of the time. */
const READS = 16;

/** `seine export --what dataset -o folder`: the media of a job as numbered shards. */
export async function exportDataset(context: Context): Promise<ExitName> {
  const { output } = context.parsed.values;
  if (isStandardOutput(output))
    throw new SeineError('a data set is a folder of files', {
      hint: 'use -o folder, or -o s3://bucket/prefix',
    });
  const options = optionsOf(context);
  const readImage = await openImageReader(changeOf(context));
  return withFolder(context, async (folder): Promise<ExitName> => {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    if (!isS3Url(output)) makeOutputFolder(resolve(output));
    const s3 = context.settings.s3 ?? AWS_ITSELF;
    const base = output.replace(/\/+$/, '');
    const open = (name: string) =>
      openDestination(isS3Url(output) ? `${base}/${name}` : join(output, name), context.stdout, s3);
    const media = new StoredMedia(folder.blobs);
    const counts = await writeDataset(
      () => mediaTasks(folder.store, job),
      { media, readImage, open },
      options,
    );
    if (context.json) printJson(context, { ...counts, output });
    else
      print(
        context.stderr,
        `${formatAmount(counts.samples, 'sample')} in ${formatAmount(counts.shards, 'shard')} written to ${output}, ${formatCount(counts.failed)} failed\n`,
      );
    return 'success';
  });
}

/** Tasks of routes for media that came to an end, one sample each. */
async function* mediaTasks(store: Store, job: Job): AsyncIterable<TaskRow> {
  const isMedia = mediaRoutes(job.spec);
  for await (const row of store.views.tasks(job.id))
    if (row.media || (row.state === 'dead' && isMedia(row))) yield row;
}

/** What failed has no route yet, unless a page or a list gave it one: the first that takes its URL counts. */
function mediaRoutes({ routes }: JobSpec): (row: TaskRow) => boolean {
  const compiled = routes.map(({ name, kind, match }) => ({
    ...{ name, isMedia: kind === 'media' },
    takes: match ? compilePatterns(match) : () => true,
  }));
  return ({ route, url }) =>
    route === null
      ? (compiled.find(({ takes }) => takes(url))?.isMedia ?? false)
      : route.startsWith('@media') || compiled.some(({ name, isMedia }) => isMedia && name === route);
}

function optionsOf(context: Context): DatasetOptions {
  const { 'shard-size': size, 'caption-column': captionColumn = null } = context.parsed.values;
  return {
    shardSize: size === undefined ? SHARD_SIZE : wholeNumber('shard-size', size, 1_000_000),
    captionColumn,
    parallel: READS,
  };
}

function changeOf(context: Context): ImageChange | null {
  const { resize, 'resize-mode': mode, encode, quality } = context.parsed.values;
  if (resize === undefined && mode !== undefined) throw new SeineError('--resize-mode needs --resize');
  if (resize === undefined && encode === undefined) {
    if (quality !== undefined) throw new SeineError('--quality needs --resize or --encode');
    return null;
  }
  return {
    size: resize === undefined ? null : wholeNumber('resize', resize, 16_384),
    mode: oneOf('resize-mode', mode ?? 'keep-ratio', RESIZE_MODES),
    encoding: encode === undefined ? null : oneOf('encode', encode, ENCODINGS),
    quality: quality === undefined ? QUALITY : wholeNumber('quality', quality, 100),
  };
}

function wholeNumber(name: string, text: string, max: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new SeineError(`--${name} must be a whole number from 1 to ${formatCount(max)}, got '${text}'`);
}

function oneOf<T extends string>(name: string, text: string, values: readonly T[]): T {
  const known = values.find((value) => value === text);
  if (known) return known;
  throw new SeineError(`--${name} must be one of ${values.join(', ')}, got '${text}'`);
}

function makeOutputFolder(path: string): void {
  try {
    makeFolder(path);
  } catch (error) {
    throw new SeineError(`cannot make the folder ${path}: ${messageOf(error)}`, {
      hint: 'choose another folder with -o',
      cause: error,
    });
  }
}
