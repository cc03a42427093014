import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolder } from '../../../app/folder.ts';
import { isResumable, summarize } from '../../../coordinator/jobs.ts';
import { VERSION } from '../../../core/identity/identity.ts';
import { isJobFile } from '../../../job-file/load-job-file.ts';
import { type Context, print } from '../../context.ts';
import { programName } from '../../program-name.ts';

/** What is known of a folder, as far as it says what a person does next. */
interface FolderState {
  /** Job files in it. */
  files: readonly string[];
  /** The job that ran last. */
  last: { name: string; isUnfinished: boolean; isAtWork: boolean; dead: number; records: number } | null;
}

interface NextCommand {
  command: string;
  why: string;
}

const SHOWN = 3;
/** A job file says `sources` near its start; other files of a folder are not read whole. */
const LOOK_AT_BYTES = 64 * 1024;

/** The most likely ones, at most three. */
export function nextCommands({ files, last }: FolderState): NextCommand[] {
  const found: NextCommand[] = [];
  const add = (command: string, why: string) => found.push({ command, why });
  const [file] = files;
  if (last?.isAtWork) {
    add(`seine status ${last.name}`, `${last.name} is running`);
    add(`seine hosts ${last.name}`, 'the request rate of each site, and the reason for it');
    add(`seine stop ${last.name}`, '`seine resume` continues it later');
  } else if (last?.isUnfinished) add(`seine resume ${last.name}`, `${last.name} is not finished`);
  else if (last) {
    if (last.dead > 0) add(`seine dead ${last.name}`, 'what failed, and why');
    if (last.records > 0) add(`seine export ${last.name} --format csv`, 'the records');
    else add(`seine export ${last.name} --what tasks`, 'what was fetched');
    add(`seine refresh ${last.name}`, 'fetch what has changed since');
  }
  if (file !== undefined) {
    if (!last) add(`seine try ${file}`, 'fetch one page and see what the job makes of it');
    add(`seine run ${file}`, last ? 'run the job file' : 'run the job');
    if (!last) add(`seine run ${file} --dry-run`, 'what it would do');
  }
  if (last?.isUnfinished) add(`seine status ${last.name}`, 'how far it is');
  if (!last && file === undefined) {
    add('seine init shop', 'write a first job; `seine init --help` lists other kinds');
    add('seine try https://example.com/ --select title=h1', 'fetch one page and look at it');
    add('seine run https://example.com/ --follow --max-pages 100', 'fetch a site without a job file');
  }
  return found.slice(0, SHOWN);
}

/** For `seine` alone in a terminal. */
export async function printNextCommands(context: Context): Promise<void> {
  const commands = nextCommands({ files: jobFilesIn('.'), last: await lastJob(context) }).map((next) => ({
    ...next,
    command: next.command.replace(/^seine/, programName()),
  }));
  const width = Math.max(...commands.map(({ command }) => command.length));
  const lines = commands.map(({ command, why }) => `  ${command.padEnd(width)}  ${why}`);
  print(
    context.stdout,
    `seine ${VERSION}\n\nNext:\n${lines.join('\n')}\n\n${programName()} --help lists all commands.\n`,
  );
}

function jobFilesIn(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true })
    .filter((entry) => entry.isFile() && isJobFile(entry.name) && looksLikeJob(join(dir, entry.name)))
    .map(({ name }) => name)
    .sort();
}

function looksLikeJob(path: string): boolean {
  const text = readFileSync(path, 'utf8').slice(0, LOOK_AT_BYTES);
  return /\.[cm]?[jt]s$/.test(path) ? /\bdefineJob\(/.test(text) : /^\s*"?sources"?\s*:/m.test(text);
}

/** Nothing here is worth an error: a folder that cannot be read has no last job. */
async function lastJob({ settings }: Context): Promise<FolderState['last']> {
  if (!settings.store && !existsSync(join(settings.dir, 'seine.db'))) return null;
  try {
    const folder = await openFolder(settings, { create: false });
    try {
      const job = await folder.store.jobs.find(null);
      if (!job) return null;
      const isAtWork = job.state === 'running' && (await folder.isAtWork(job.id));
      const { dead, records } = await summarize(folder.store, job, { alive: isAtWork });
      return { name: job.name, isUnfinished: isResumable(job.state), isAtWork, dead, records };
    } finally {
      await folder.close();
    }
  } catch {
    return null;
  }
}
