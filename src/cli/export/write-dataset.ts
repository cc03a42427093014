import { extname } from 'node:path';
import { messageOf, SeineError } from '../../core/errors.ts';
import { TAR_END, tarHeader, tarPadding } from '../../core/media/tar.ts';
import type { TaskRow } from '../../core/model.ts';
import { writeParquet } from '../../tables/parquet.ts';
import { type ColumnType, jsonText, type Table, tableOf } from '../../tables/table.ts';
import { CorruptMediaError, type DatasetImage, type ImageReader } from './dataset-image.ts';
import type { Destination } from './destination.ts';
import { type MetaColumns, readMetaColumns } from './record-table.ts';
import type { StoredMedia } from './stored-media.ts';

/**
 * Image data sets in the form that WebDataset and img2dataset read: numbered shards, `00000.tar`, each with its index,
 * `00000.parquet`. A sample has one name, `000000042.jpg`, `.txt` with its caption and `.json` with all that is known.
 * Every row of the list that was fetched is a sample of its own, also where others have the same bytes. Rows that failed
 * are in the index alone.
 */
export interface DatasetOptions {
  shardSize: number;
  /** Column of the list whose text becomes the caption. */
  captionColumn: string | null;
  /** How many samples are read at the same time. */
  parallel: number;
}

interface DatasetCounts {
  shards: number;
  samples: number;
  failed: number;
}

interface Sample {
  row: TaskRow;
  image: DatasetImage | null;
  error: string | null;
}

/** A row of the index; the columns of the list follow. */
interface IndexRow {
  key: string | null;
  url: string;
  status: 'success' | 'failed';
  error: string | null;
  caption: string | null;
  width: number | null;
  height: number | null;
  originalWidth: number | null;
  originalHeight: number | null;
  bytes: number | null;
  sha256: string | null;
  md5: string | null;
  contentType: string | null;
  httpStatus: number | null;
  fetchedAt: string | null;
  meta: TaskRow['meta'];
}

const INDEX_TYPES: Record<keyof IndexRow, ColumnType> = {
  key: 'text',
  url: 'text',
  status: 'text',
  error: 'text',
  caption: 'text',
  width: 'integer',
  height: 'integer',
  originalWidth: 'integer',
  originalHeight: 'integer',
  bytes: 'integer',
  sha256: 'text',
  md5: 'text',
  contentType: 'text',
  httpStatus: 'integer',
  fetchedAt: 'time',
  meta: 'json',
};

const SHARD_DIGITS = 5;

export async function writeDataset(
  read: () => AsyncIterable<TaskRow>,
  parts: { media: StoredMedia; readImage: ImageReader; open(name: string): Promise<Destination> },
  options: DatasetOptions,
): Promise<DatasetCounts> {
  const counts: DatasetCounts = { shards: 0, samples: 0, failed: 0 };
  // The same columns in each index, whichever rows fell into its shard.
  const meta = await readMetaColumns(INDEX_TYPES, read());
  const { captionColumn } = options;
  if (captionColumn !== null && !meta.names.includes(captionColumn))
    throw new SeineError(`no row has a column '${captionColumn}'`, {
      hint:
        meta.names.length > 0 ? `choose one of ${meta.names.join(', ')}` : 'the list has no other columns',
    });
  let shard: Shard | null = null;
  try {
    const load = (row: TaskRow) => loadSample(row, parts);
    for await (const sample of inOrder(read(), options.parallel, load)) {
      if (shard?.isFull) {
        await shard.finish();
        shard = null;
      }
      shard ??= await Shard.open(counts.shards++, meta, parts.open, options);
      await shard.add(sample);
      if (sample.image) counts.samples++;
      else counts.failed++;
    }
    await shard?.finish();
    return counts;
  } catch (error) {
    await shard?.abort();
    throw error;
  }
}

async function loadSample(
  row: TaskRow,
  { media, readImage }: { media: StoredMedia; readImage: ImageReader },
): Promise<Sample> {
  if (!row.media) return { row, image: null, error: row.failureCode ?? row.state };
  const bytes = await media.read(row.media);
  const extension = extname(row.media.member ?? row.media.key).slice(1) || 'bin';
  try {
    return { row, image: await readImage(bytes, extension), error: null };
  } catch (error) {
    if (!(error instanceof CorruptMediaError)) throw error;
    return { row, image: null, error: `corrupt-media: ${messageOf(error)}` };
  }
}

class Shard {
  readonly #number: number;
  readonly #meta: MetaColumns;
  readonly #options: DatasetOptions;
  readonly #tar: Destination;
  readonly #index: Destination;
  readonly #rows: IndexRow[] = [];
  #samples = 0;

  private constructor(
    number: number,
    meta: MetaColumns,
    options: DatasetOptions,
    files: { tar: Destination; index: Destination },
  ) {
    this.#number = number;
    this.#meta = meta;
    this.#options = options;
    this.#tar = files.tar;
    this.#index = files.index;
  }

  static async open(
    number: number,
    meta: MetaColumns,
    open: (name: string) => Promise<Destination>,
    options: DatasetOptions,
  ): Promise<Shard> {
    const name = String(number).padStart(SHARD_DIGITS, '0');
    const tar = await open(`${name}.tar`);
    return new Shard(number, meta, options, { tar, index: await open(`${name}.parquet`) });
  }

  get isFull(): boolean {
    return this.#samples >= this.#options.shardSize;
  }

  async add(sample: Sample): Promise<void> {
    const row = this.#rowOf(sample);
    this.#rows.push(row);
    if (!sample.image) return;
    this.#samples++;
    const { bytes, extension } = sample.image;
    const at = row.fetchedAt === null ? 0 : Date.parse(row.fetchedAt);
    // `.json` is what is said of an object, so that an object of JSON needs another name.
    await this.#member(`${row.key}.${extension === 'json' ? 'data.json' : extension}`, bytes, at);
    if (row.caption !== null) await this.#member(`${row.key}.txt`, Buffer.from(row.caption), at);
    await this.#member(`${row.key}.json`, Buffer.from(jsonText(row)), at);
  }

  async finish(): Promise<void> {
    await this.#tar.write(TAR_END);
    await writeParquet(this.#table(), this.#index);
    await this.#tar.finish();
    // The index comes last: a shard that has one is whole.
    await this.#index.finish();
  }

  async abort(): Promise<void> {
    await Promise.all([this.#tar.abort(), this.#index.abort()]);
  }

  #rowOf({ row, image, error }: Sample): IndexRow {
    const { captionColumn, shardSize } = this.#options;
    const digits = String(shardSize - 1).length;
    const number = `${String(this.#number).padStart(SHARD_DIGITS, '0')}${String(this.#samples).padStart(digits, '0')}`;
    const caption = captionColumn === null ? null : row.meta?.[captionColumn];
    return {
      key: image ? number : null,
      url: row.url,
      status: image ? 'success' : 'failed',
      error,
      caption: caption === null || caption === undefined ? null : String(caption),
      width: image?.width ?? null,
      height: image?.height ?? null,
      originalWidth: image?.originalWidth ?? null,
      originalHeight: image?.originalHeight ?? null,
      bytes: image?.bytes.length ?? null,
      sha256: row.sha256,
      md5: row.media?.md5 ?? null,
      contentType: row.contentType,
      httpStatus: row.httpStatus,
      fetchedAt: row.fetchedAt,
      meta: row.meta,
    };
  }

  #table(): Table {
    const { columns, rows } = tableOf(INDEX_TYPES, each(this.#rows), this.#meta.cellsOf);
    return { columns: [...columns, ...this.#meta.columns], rows };
  }

  async #member(name: string, bytes: Buffer, modifiedAt: number): Promise<void> {
    await this.#tar.write(tarHeader({ name, size: bytes.length, modifiedAt }));
    await this.#tar.write(bytes);
    await this.#tar.write(tarPadding(bytes.length));
  }
}

async function* each<T>(items: readonly T[]): AsyncIterable<T> {
  yield* items;
}

/** Works on several at a time; the results come in the order of the items. */
async function* inOrder<T, R>(
  items: AsyncIterable<T>,
  parallel: number,
  work: (item: T) => Promise<R>,
): AsyncIterable<R> {
  const running: Promise<R>[] = [];
  try {
    for await (const item of items) {
      running.push(work(item));
      if (running.length >= parallel) yield await running.shift()!;
    }
    while (running.length > 0) yield await running.shift()!;
  } finally {
    // Whoever stops early must not leave a rejection that no one hears.
    await Promise.allSettled(running);
  }
}
