import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { JobInput, SourceSpec } from '../../../src/core/job-schema/job.ts';
import { isPublicAddress } from '../../../src/core/url/address.ts';
import { makeAddressGuard } from '../../../src/core/url/address-guard.ts';
import type { RemoteFiles } from '../../../src/ports/remote-files.ts';
import type { Source, SourceRow } from '../../../src/ports/source.ts';
import { openFilesByScheme } from '../../../src/sources/files/files-by-scheme.ts';
import { checkSource, openSource, type SourceTools } from '../../../src/sources/open-source.ts';
import { collect, specOf, temporaryFolder } from '../fixtures.ts';

/** Sources over real files in a folder of the test's own. */
export interface SourceSetup {
  dir: string;
  /** A file with this name and content; `.gz` at the end compresses it. */
  write(name: string, content: string | Buffer): Promise<string>;
  /** A file with this ending and a name of its own. */
  add(content: string | Buffer, ending: string): Promise<string>;
  open(source: SourceInput): Source;
  check(source: SourceInput): Promise<void>;
  rows(source: SourceInput, from?: string | null): Promise<SourceRow[]>;
  close(): Promise<void>;
}

type SourceInput =
  | Extract<NonNullable<JobInput['sources']>, string>
  | Exclude<NonNullable<JobInput['sources']>, unknown[]>;

export async function openSourceSetup(
  tools: Partial<SourceTools> & { s3?: () => Promise<RemoteFiles> } = {},
): Promise<SourceSetup> {
  const { dir, remove } = await temporaryFolder();
  const files = openFilesByScheme(tools.s3 ?? (() => Promise.reject(new Error('no S3 here'))), {
    guard: makeAddressGuard(isPublicAddress, false),
    jobAllowsPrivate: false,
  });
  const all: SourceTools = {
    files: files.of,
    query: () => {
      throw new Error('no store here');
    },
    spool: { dir: join(dir, 'inputs'), jobId: 1, pass: 1, source: 0 },
    ...tools,
  };
  let count = 0;
  const parsed = (source: SourceInput): SourceSpec => specOf({ sources: [source] }).sources[0]!;
  const setup: SourceSetup = {
    dir,
    async write(name, content) {
      const path = join(dir, name);
      const bytes = Buffer.from(content as string);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, name.endsWith('.gz') ? gzipSync(bytes) : bytes);
      return path;
    },
    add: (content, ending) => setup.write(`list-${count++}${ending}`, content),
    open: (source) => openSource(parsed(source), all),
    check: (source) => checkSource(parsed(source), all),
    rows: (source, from = null) => collect(setup.open(source).rows(from)),
    async close() {
      await files.close();
      await remove();
    },
  };
  return setup;
}

export function urlsOf(rows: SourceRow[]): string[] {
  return rows.map(({ row }) => ('url' in row ? row.url : `! ${row.reason}`));
}

/** Whoever stops after any row and continues from its position gets the same rows. */
export async function continuesAnywhere(
  all: SourceRow[],
  from: (position: string) => Promise<SourceRow[]>,
  indexes: Iterable<number> = all.keys(),
): Promise<number | null> {
  for (const index of indexes) {
    const rest = await from(all[index]!.position);
    if (JSON.stringify(rest) !== JSON.stringify(all.slice(index + 1))) return index;
  }
  return null;
}
