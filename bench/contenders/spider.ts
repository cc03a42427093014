import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH_FOLDER, type Contender, childScript, type Mode, readPlain } from './contender.ts';

const PACKAGE = join(BENCH_FOLDER, 'node_modules', '@spider-rs', 'spider-rs');

/**
 * `links` is spider-rs at its best: nothing leaves Rust, nothing is kept. It has no selectors, so `select` hands
 * each page to JavaScript and selects there; the bars compare with the faster one in both modes.
 */
export function spiderContender(mode: Mode): Contender {
  return {
    id: `spider-${mode}`,
    label: mode === 'links' ? 'spider-rs' : 'spider-rs, pages handed to JavaScript, htmlparser2',
    mode,
    keeps: 'nothing',
    missing: () => (existsSync(PACKAGE) ? undefined : '@spider-rs/spider-rs is not installed in bench/'),
    command: ({ url }) => ({ args: [childScript('spider-child.ts'), url, mode] }),
    read: readPlain,
  };
}
