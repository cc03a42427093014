import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { messageOf } from '../core/errors.ts';
import type { RunCode } from '../job-file/load-handlers.ts';
import { isJobFile, type LoadedJob, loadJobFile } from '../job-file/load-job-file.ts';
import type { Logger } from '../ports/ambient.ts';

interface JobFile {
  /** Size and time of the file when it was read. */
  version: string;
  loaded: LoadedJob | null;
}

interface JobFilesOptions {
  files: readonly string[];
  /** All job files in it count, also those that are added later. */
  folder: string | null;
  logger: Logger;
  runCode: RunCode;
}

/** Job files that a server was given: read when they appear or change. One that cannot be read is told once, and left out. */
export class JobFiles {
  readonly #options: JobFilesOptions;
  readonly #known = new Map<string, JobFile>();

  constructor(options: JobFilesOptions) {
    this.#options = options;
  }

  /** Those that are new or changed since the last look. */
  async changed(): Promise<LoadedJob[]> {
    const changed: LoadedJob[] = [];
    const paths = await this.#paths();
    for (const path of this.#known.keys()) if (!paths.includes(path)) this.#known.delete(path);
    for (const path of paths) {
      const version = await versionOf(path);
      if (version === null || this.#known.get(path)?.version === version) continue;
      const loaded = await this.#load(path);
      this.#known.set(path, { version, loaded });
      if (loaded) changed.push(loaded);
    }
    return changed;
  }

  /** It is among those that have changed again, at the next look. */
  forget(job: LoadedJob): void {
    for (const [path, { loaded }] of this.#known) if (loaded === job) this.#known.delete(path);
  }

  /** All that could be read, as they are now. */
  *all(): Iterable<LoadedJob> {
    for (const { loaded } of this.#known.values()) if (loaded) yield loaded;
  }

  async #load(path: string): Promise<LoadedJob | null> {
    try {
      return await loadJobFile(path, this.#options.runCode);
    } catch (error) {
      this.#options.logger.error(`cannot use the job file ${path}: ${messageOf(error)}`);
      return null;
    }
  }

  async #paths(): Promise<string[]> {
    const { files, folder } = this.#options;
    const given = files.map((path) => resolve(path));
    if (folder === null) return given;
    const found = await readdir(folder).catch((error: unknown) => {
      this.#options.logger.error(`cannot read the folder of jobs ${folder}: ${messageOf(error)}`);
      return [];
    });
    const inFolder = found.filter(isJobFile).sort();
    return [...given, ...inFolder.map((name) => resolve(join(folder, name)))];
  }
}

async function versionOf(path: string): Promise<string | null> {
  try {
    const { size, mtimeMs, ino } = await stat(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return null;
  }
}
