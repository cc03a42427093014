import { readFile } from 'node:fs/promises';
import { basename, dirname, extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf, SeineError } from '../core/errors.ts';
import { type SourceSpec, toJobName } from '../core/job-schema/job.ts';
import { isRemote, withPath } from '../core/job-schema/source-name.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { JobCode } from '../ports/store.ts';
import { describeCodeError } from '../worker/job/error-place.ts';
import { anchorSecrets } from './check-job.ts';
import { bundleKeyOf, importCode, type RunCode } from './load-handlers.ts';
import { hashOfSpec, type JobLines, type ParsedJob, parseJob } from './parse-job.ts';

const JOB_FILE_ENDINGS = ['.ts', '.mts', '.js', '.mjs', '.json', '.yaml', '.yml'];

export interface LoadedJob extends ParsedJob {
  /** The job's code as one module, when it has handlers. */
  code: Uint8Array | null;
  /** The whole path of the job file, when the job is wholly in it. */
  file: string | null;
}

/** What the store keeps of a job. Its code is written down as a blob. */
export async function storeCode(
  blobs: Blobs,
  { spec, code, file }: Pick<LoadedJob, 'spec' | 'code' | 'file'>,
): Promise<JobCode> {
  const bundle = code ? bundleKeyOf(code) : null;
  if (bundle) await blobs.put(bundle, code!);
  return { spec, specHash: hashOfSpec(spec, bundle), bundle, file };
}

export function isJobFile(path: string): boolean {
  return !isRemote(path) && JOB_FILE_ENDINGS.includes(extname(path).toLowerCase());
}

/** A job from a TypeScript, JavaScript, YAML or JSON file. The code of the first two runs here, by `run`. */
export async function loadJobFile(path: string, run: RunCode): Promise<LoadedJob> {
  const name = toJobName(basename(path, extname(path)).replace(/\.job$/, ''));
  const text = await readText(path);
  const ending = extname(path).toLowerCase();
  const isData = ending === '.json' || ending === '.yaml' || ending === '.yml';
  const code = isData ? null : await bundle(path);
  if (text.trim() === '')
    throw new SeineError(`${path} is empty`, {
      hint: 'a job needs at least `sources`; see docs/jobs.md',
    });
  const definition = code ? await run(() => evaluate(code, path)) : await parseData(text, path, ending);
  if (code && (definition === undefined || definition === null))
    throw new SeineError(`${path} has no default export`, {
      hint: 'export the job: export default defineJob({ … })',
    });
  if (typeof definition === 'function')
    throw new SeineError(`${path} exports a function, not a job`, { hint: 'export what it returns' });
  if (Array.isArray(definition))
    throw new SeineError(`${path} is a list, not a job`, {
      hint: 'write a list of URLs as .jsonl: one object per line, without commas between lines',
    });
  const lines = isData ? await linesOf(text) : undefined;
  const parsed = await parseJob(definition, path, name, undefined, lines);
  const dir = dirname(resolve(path));
  const sources = parsed.spec.sources.map((source) => anchorSource(source, dir));
  return {
    spec: { ...anchorSecrets(parsed.spec, dir), sources },
    handlers: parsed.handlers,
    code: parsed.handlers.size > 0 ? code : null,
    file: resolve(path),
  };
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new SeineError(`no such file: ${path}`, { cause: error });
    if (code === 'EISDIR')
      throw new SeineError(`${path} is a folder, not a job file`, {
        hint: 'pass a file in it',
        cause: error,
      });
    throw new SeineError(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

async function parseData(text: string, path: string, ending: string): Promise<unknown> {
  try {
    if (ending === '.json') return JSON.parse(text);
    const { parseDocument } = await import('yaml');
    const document = parseDocument(text, { logLevel: 'silent' });
    // The parser would print what it only warns of, with a piece of the file; also of keys that are no texts.
    const [problem] = [...document.errors, ...document.warnings];
    if (problem) throw problem;
    return document.toJS();
  } catch (error) {
    const [message] = messageOf(error).split('\n');
    const { linePos } = error as { linePos?: [{ line: number; col: number }] };
    const [, line, column] = linePos
      ? [null, linePos[0].line, linePos[0].col]
      : (/\(line (\d+) column (\d+)\)/.exec(message!) ?? []);
    const place = line === undefined ? path : `${path}:${line}:${column}`;
    const reason = message!
      .replace(/ at line \d+, column \d+:?$/, '')
      .replace(/ \(line \d+ column \d+\)$/, '');
    throw new SeineError(`${place}: ${reason}`, { cause: error });
  }
}

/** Where in the text its values are. JSON is YAML, but for texts that no job has. */
async function linesOf(text: string): Promise<JobLines> {
  const { isMap, isScalar, isSeq, LineCounter, parseDocument, visit } = await import('yaml');
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, logLevel: 'silent' });
  const at = (node: unknown): string => {
    const range = (node as { range?: [number, number, number] | null } | null)?.range;
    if (!range) return '';
    const { line, col } = counter.linePos(range[0]);
    return `:${line}:${col}`;
  };
  return {
    ofPath(path, isName) {
      let node: unknown = document.contents;
      let place = '';
      for (const [index, step] of path.entries()) {
        if (isMap(node)) {
          const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
          if (!pair) return place;
          const isLast = index === path.length - 1;
          node = isLast && isName ? pair.key : (pair.value ?? pair.key);
        } else if (isSeq(node) && typeof step === 'number') node = node.items[step];
        else return place;
        place = at(node) || place;
      }
      return place;
    },
    ofValue(wanted) {
      let place = '';
      visit(document, {
        Scalar(key, node) {
          const { value } = node;
          // A selector may be followed by the attribute that is read.
          if (key === 'key' || typeof value !== 'string') return undefined;
          if (value !== wanted && !value.startsWith(`${wanted}@`)) return undefined;
          place = at(node);
          return visit.BREAK;
        },
      });
      return place;
    },
  };
}

/** One module with everything in it, so that it can be stored and run anywhere. */
async function bundle(path: string): Promise<Uint8Array> {
  const { build } = await import('esbuild');
  const here = fileURLToPath(import.meta.url);
  try {
    const result = await build({
      entryPoints: [path],
      // Otherwise it is the folder in which the first job of this process was loaded.
      absWorkingDir: process.cwd(),
      bundle: true,
      write: false,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      logLevel: 'silent',
      // Tells where in these files a handler throws.
      sourcemap: 'inline',
      sourcesContent: false,
      alias: { seine: resolve(dirname(here), `define-job${extname(here)}`) },
    });
    return result.outputFiles[0]!.contents;
  } catch (error) {
    const first = (
      error as { errors?: { text: string; location?: { file: string; line: number; column: number } }[] }
    ).errors?.[0];
    const place = first?.location ? `${path}:${first.location.line}:${first.location.column + 1}` : path;
    throw new SeineError(`${place}: ${first?.text ?? messageOf(error)}`, { cause: error });
  }
}

async function evaluate(code: Uint8Array, path: string): Promise<unknown> {
  try {
    return await importCode(code);
  } catch (error) {
    throw new SeineError(`cannot load ${path}: ${describeCodeError(error)}`, { cause: error });
  }
}

/** Files are meant from where the job file is, also when the job is resumed from elsewhere. */
export function anchorSource(source: SourceSpec, dir: string): SourceSpec {
  return withPath(source, (path) => resolve(dir, path));
}
