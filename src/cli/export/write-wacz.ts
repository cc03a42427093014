import { hash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { cdxLine } from '../../core/warc/cdx.ts';
import { membersOf } from '../../core/warc/members.ts';
import { ZipLayout } from '../../core/warc/zip.ts';
import type { Destination } from './destination.ts';
import type { SortedLines } from './sorted-lines.ts';

/** A WARC file of a job: the pages of one part of a batch, some megabytes. */
export interface WarcFile {
  /** Unlike that of any other file. */
  name: string;
  read(): Promise<Buffer>;
}

export interface WaczPage {
  url: string;
  /** ISO 8601. */
  ts: string;
}

interface WaczInput {
  title: string;
  software: string;
  /** Epoch milliseconds. */
  now: number;
  files: AsyncIterable<WarcFile>;
  pages: AsyncIterable<WaczPage>;
  /** Where the lines of the index wait until all are there. */
  lines: SortedLines;
}

interface WaczCounts {
  files: number;
  records: number;
  pages: number;
}

interface Resource {
  name: string;
  path: string;
  hash: string;
  bytes: number;
}

/** The index is in blocks, of which a reader fetches the one that it needs. */
const BLOCK_LINES = 3_000;
/** Pages in one list, which readers load as a whole: some 20 MB. Others are in the index all the same. */
const WACZ_PAGES_MAX = 200_000;
const INDEX_PATH = 'indexes/index.cdx.gz';

/** Archive, index and list of pages in one file, as WACZ 1.1.1 says. */
export async function writeWacz(input: WaczInput, to: Destination): Promise<WaczCounts> {
  const zip = new ZipLayout(input.now);
  const resources: Resource[] = [];
  const add = async (path: string, bytes: Buffer) => {
    await to.write(zip.begin(path, bytes));
    await to.write(bytes);
    const name = path.slice(path.lastIndexOf('/') + 1);
    resources.push({ name, path, hash: sha256Of(bytes), bytes: bytes.length });
  };
  let files = 0;
  for await (const { name, read } of input.files) {
    const bytes = await read();
    input.lines.add(linesOf(bytes, name));
    await add(`archive/${name}`, bytes);
    files++;
  }
  const { index, blocks, records } = indexOf(input.lines);
  await add(INDEX_PATH, index);
  await add('indexes/index.idx', blocks);
  const { list, pages } = await listOf(input.pages);
  await add('pages/pages.jsonl', list);
  const description = Buffer.from(`${JSON.stringify(packageOf(input, resources), null, 2)}\n`);
  await add('datapackage.json', description);
  const digest = { path: 'datapackage.json', hash: sha256Of(description) };
  await add('datapackage-digest.json', Buffer.from(`${JSON.stringify(digest, null, 2)}\n`));
  await to.write(zip.end());
  return { files, records, pages };
}

function* linesOf(bytes: Buffer, name: string): Generator<string> {
  for (const member of membersOf(bytes)) {
    const line = cdxLine(member, name);
    if (line !== null) yield line;
  }
}

/** The lines in compressed blocks, and the first line of each with its place: some 40 bytes a record. */
function indexOf(lines: Iterable<string>): { index: Buffer; blocks: Buffer; records: number } {
  const parts: Buffer[] = [];
  const meta = { format: 'cdxj-gzip-1.0', filename: INDEX_PATH.slice(INDEX_PATH.indexOf('/') + 1) };
  let places = `!meta 0 ${JSON.stringify(meta)}\n`;
  let offset = 0;
  let records = 0;
  let block: string[] = [];
  const flush = () => {
    if (block.length === 0) return;
    const bytes = gzipSync(`${block.join('\n')}\n`);
    const [key, timestamp] = block[0]!.split(' ', 2);
    const place = { offset, length: bytes.length, digest: sha256Of(bytes), filename: meta.filename };
    places += `${key} ${timestamp} ${JSON.stringify(place)}\n`;
    parts.push(bytes);
    offset += bytes.length;
    block = [];
  };
  for (const line of lines) {
    block.push(line);
    records++;
    if (block.length === BLOCK_LINES) flush();
  }
  flush();
  return { index: Buffer.concat(parts), blocks: Buffer.from(places), records };
}

async function listOf(pages: AsyncIterable<WaczPage>): Promise<{ list: Buffer; pages: number }> {
  const parts = [`${JSON.stringify({ format: 'json-pages-1.0', id: 'pages', title: 'All Pages' })}\n`];
  for await (const { url, ts } of pages) {
    if (parts.length > WACZ_PAGES_MAX) break;
    const id = hash('sha256', `${ts} ${url}`, 'hex').slice(0, 32);
    parts.push(`${JSON.stringify({ id, url, ts })}\n`);
  }
  return { list: Buffer.from(parts.join('')), pages: parts.length - 1 };
}

function packageOf({ title, software, now }: WaczInput, resources: readonly Resource[]): object {
  return {
    profile: 'data-package',
    wacz_version: '1.1.1',
    title,
    software,
    created: new Date(now).toISOString(),
    resources,
  };
}

function sha256Of(bytes: Buffer): string {
  return `sha256:${hash('sha256', bytes, 'hex')}`;
}
