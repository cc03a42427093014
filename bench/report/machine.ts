import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { BENCH_FOLDER, ROOT_FOLDER } from '../contenders/contender.ts';

export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown CPU';
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} × ${model}, ${memory} GB, ${type()} ${release()}`;
}

function packageVersion(folder: string): string {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version;
  } catch {
    return 'not installed';
  }
}

function nginxVersion(): string {
  try {
    // nginx prints its version on stderr.
    return execFileSync('sh', ['-c', 'PATH=$PATH:/usr/sbin nginx -v 2>&1'], { encoding: 'utf8' })
      .trim()
      .replace(/^.*nginx\//, '');
  } catch {
    return 'not installed';
  }
}

export function describeVersions(): Record<string, string> {
  return {
    node: process.versions.node,
    seine: packageVersion(ROOT_FOLDER),
    undici: packageVersion(join(ROOT_FOLDER, 'node_modules', 'undici')),
    'spider-rs': packageVersion(join(BENCH_FOLDER, 'node_modules', '@spider-rs', 'spider-rs')),
    crawlee: packageVersion(join(BENCH_FOLDER, 'node_modules', '@crawlee', 'cheerio')),
    nginx: nginxVersion(),
  };
}
