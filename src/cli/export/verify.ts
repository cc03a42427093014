import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type ExitName, messageOf, SeineError } from '../../core/errors.ts';
import { ChainCheck, type ChainFault, type ChainSummary } from '../../core/host-log/check-chain.ts';
import type { Store } from '../../ports/store.ts';
import { formatCount } from '../../tui/format.ts';
import { type Command, print, printable, printJson, withFolder } from '../context.ts';
import { hostLog } from './tables.ts';

const HOSTS_STEP = 500;
/** Faults shown as text; `--json` has more of them. */
const FAULTS_SHOWN = 10;

/** Checks the chains of a log that was exported, or of all hosts of the folder. */
export const verifyCommand: Command = async (context) => {
  const [file] = context.parsed.args;
  const { extends: earlierFile } = context.parsed.values;
  const earlier = new ChainCheck();
  if (earlierFile !== undefined) {
    await checkFile(earlierFile, earlier);
    const { faults } = earlier.finish();
    if (faults.length > 0)
      throw new SeineError(`the earlier log ${earlierFile} is not whole: ${faultText(faults[0]!)}`, {
        exit: 'failed-check',
        hint: `check it by itself with \`seine verify ${earlierFile}\``,
      });
  }
  const check = new ChainCheck(earlier.heads);
  if (file !== undefined) await checkFile(file, check);
  else await withFolder(context, ({ store }) => checkStore(store, check));
  const summary = check.finish();
  const heads = [...check.heads].map(([host, { number, hash }]) => ({ host, number, hash }));
  if (context.json) printJson(context, { ok: summary.faultCount === 0, ...summary, heads });
  else print(context.stdout, `${textOf(summary)}\n`);
  return (summary.faultCount === 0 ? 'success' : 'failed-check') satisfies ExitName;
};

async function checkStore(store: Store, check: ChainCheck): Promise<void> {
  for (let after = ''; ; ) {
    const hosts = await store.hosts.listAfter({ after, limit: HOSTS_STEP });
    for (const { host } of hosts) for await (const row of hostLog(store, host)) check.add(row);
    if (hosts.length < HOSTS_STEP) return;
    after = hosts.at(-1)!.host;
  }
}

/** Longer than any entry: a host has few robots.txt. */
const LINE_CHARACTERS_MAX = 1024 * 1024;

/** JSONL, also compressed; `-` is standard input. */
async function checkFile(file: string, check: ChainCheck): Promise<void> {
  const input = file === '-' ? process.stdin : createReadStream(file);
  const text = file.endsWith('.gz') ? pipeline(input, createGunzip(), () => {}) : input;
  text.setEncoding('utf8');
  let number = 0;
  let entries = 0;
  let rest = '';
  const add = (line: string) => {
    number++;
    if (line.trim() === '') return;
    entries++;
    addLine(line, number, check);
  };
  try {
    for await (const chunk of text) {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop()!;
      if (rest.length > LINE_CHARACTERS_MAX) throw new Error('a line is too long for an entry of a log');
      for (const line of lines) add(line);
    }
    add(rest);
  } catch (error) {
    throw new SeineError(`cannot read ${file}: ${messageOf(error)}`, {
      hint: 'pass a log that `seine export --what hosts` wrote as JSONL',
    });
  }
  // Whoever removes all entries leaves a file without a fault.
  if (entries === 0)
    throw new SeineError(`${file} has no entries, so there is nothing to check`, {
      hint: 'pass a log that `seine export --what hosts` wrote as JSONL; it has entries of every host that was asked',
    });
}

function addLine(line: string, number: number, check: ChainCheck): void {
  try {
    check.add(JSON.parse(line));
  } catch {
    check.fault(null, null, `line ${number} is not JSON`);
  }
}

function textOf({
  hosts,
  entries,
  requests,
  refusals,
  lost,
  cut,
  shortGaps,
  faults,
  faultCount,
}: ChainSummary): string {
  const lines = [
    faultCount === 0
      ? `whole: ${counted(entries, 'entry', 'entries')} of ${counted(hosts, 'host', 'hosts')}`
      : `not whole: ${counted(faultCount, 'fault', 'faults')} in ${counted(entries, 'entry', 'entries')} of ${counted(hosts, 'host', 'hosts')}`,
    `  ${counted(requests, 'request', 'requests')}, ${counted(refusals, 'refusal', 'refusals')}, ${counted(shortGaps, 'gap', 'gaps')} shorter than permitted`,
  ];
  if (cut.hosts > 0)
    lines.push(
      `  ${counted(cut.hosts, 'log begins', 'logs begin')} with a checkpoint: ${counted(cut.entries, 'earlier entry', 'earlier entries')} with ${counted(cut.requests, 'request', 'requests')} and ${counted(cut.refusals, 'refusal', 'refusals')} were cut`,
    );
  if (lost > 0) lines.push(`  ${counted(lost, 'permit', 'permits')} of which it is not known what was sent`);
  for (const fault of faults.slice(0, FAULTS_SHOWN)) lines.push(`  ${printable(faultText(fault))}`);
  if (faultCount > FAULTS_SHOWN) lines.push(`  … and ${formatCount(faultCount - FAULTS_SHOWN)} more`);
  return lines.join('\n');
}

function faultText({ host, number, problem }: ChainFault): string {
  return host === null ? problem : `${host}, entry ${number}: ${problem}`;
}

function counted(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
