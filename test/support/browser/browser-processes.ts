import { readdirSync, readFileSync } from 'node:fs';

/** Processes of a browser, by its process group. */

interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  /** `Z` is dead and not yet fetched by its parent. */
  state: string;
  command: string;
}

export function listProcesses(): ProcessRow[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
        const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        const command = readFileSync(`/proc/${name}/cmdline`, 'latin1').replaceAll('\0', ' ');
        return [{ pid: Number(name), parent: Number(parent), group: Number(group), state: state!, command }];
      } catch {
        return [];
      }
    });
}

export function groupOf(pid: number): ProcessRow[] {
  return listProcesses().filter(({ group }) => group === pid);
}

export function renderersOf(pid: number): number[] {
  return groupOf(pid)
    .filter(({ command, state }) => command.includes('--type=renderer') && state !== 'Z')
    .map((each) => each.pid);
}
