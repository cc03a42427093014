import { type Contender, childScript, readPlain } from './contender.ts';

/** undici and a link scan: the bound for anything on Node, with one thread or two. */
export function rawContender(threads: number): Contender {
  return {
    id: `raw-${threads}`,
    label: `Raw bound: undici + link scan, ${threads} thread${threads === 1 ? '' : 's'}`,
    mode: 'links',
    keeps: 'nothing',
    missing: () => undefined,
    command: ({ url }) => ({ args: [childScript('raw-child.ts'), url, String(threads)] }),
    read: readPlain,
  };
}
