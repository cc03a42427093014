import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DEAD_MS } from '../../src/transport/bullmq/heartbeat.ts';
import { FLEET_FAULTS } from '../../test/support/crash/fleet-faults.ts';
import { lastJson, startSeine, temporaryFolder } from '../../test/support/seine-process.ts';
import { pathOf, startLinkedSite } from '../../test/support/sites/linked-site.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

interface Case {
  name: string;
  open: (typeof FLEET_FAULTS)[keyof typeof FLEET_FAULTS];
  kills: number;
  /** Until it is known that a worker is gone. */
  noticedMs: number;
}

interface Facts {
  ms: number;
  batches: number;
  requests: number;
}

const CASES: readonly Case[] = [
  { name: 'Lambda', open: FLEET_FAULTS.lambda, kills: 2, noticedMs: 1_000 },
  { name: 'BullMQ', open: FLEET_FAULTS.worker, kills: 1, noticedMs: DEAD_MS },
];
/** A lost batch is fetched again, and a new worker starts; the rest is not slower than before. */
const TIMES_MAX = 1.5;
const BATCH_SIZE = 60;
/** Of two workers one may have nothing to do when it is killed: that is no loss, and the list is scraped again. */
const TRIES_MAX = 5;

const { values } = readOptions({
  start: 'npm run lost-workers --',
  about: `What the loss of workers costs. The same list is scraped undisturbed and with workers that are killed, one after the
other, over the Lambda emulator and over BullMQ. One lost worker is no reason to send its tasks one by one.`,
  options: {
    pages: { count: 1_000, does: 'pages of the list' },
    rate: { number: 50, does: 'requests per second' },
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});
const pages = values.pages;

async function scrape({ open }: Case, kills: number): Promise<Facts> {
  const site = await startLinkedSite({ pages, delayMs: 5 });
  const folder = temporaryFolder();
  const fleet = await open(folder.path);
  const list = join(folder.path, 'list.txt');
  writeFileSync(
    list,
    Array.from({ length: pages }, (_, index) => `${new URL(pathOf(index), site.url)}\n`).join(''),
  );
  const dir = join(folder.path, 'seine');
  const args = [
    'run',
    list,
    '--rate',
    String(values.rate),
    '--parallel',
    '8',
    '--no-adaptive',
    '--allow-private',
  ];
  args.push('--batch-size', String(BATCH_SIZE), '--dir', dir, '--name', 'list', '--json', ...fleet.args);
  const run = startSeine(args, fleet.env ? { env: fleet.env } : {});
  try {
    const ended = run.finished.then(() => undefined);
    await Promise.race([site.requests(1), ended]);
    const startedAt = performance.now();
    for (let kill = 1; kill <= kills; kill++) {
      await Promise.race([site.requests(Math.floor((pages * kill) / (kills + 2))), ended]);
      await fleet.strike(Math.random);
    }
    const result = await run.finished;
    const summary = lastJson(result);
    if (summary.state !== 'done' || summary.done !== pages)
      throw new Error(`the list was not scraped: ${JSON.stringify(summary)} ${result.stderr}`);
    return { ms: performance.now() - startedAt, batches: batchesOf(dir), requests: site.log.length };
  } finally {
    await run.killTree();
    await fleet.stop();
    await site.close();
    folder.remove();
  }
}

/** With workers that had pages when they were killed. */
async function scrapeWithLoss(each: Case, alone: Facts): Promise<Facts> {
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const struck = await scrape(each, each.kills);
    if (struck.requests > alone.requests) return struck;
    process.stdout.write(`${each.name}: a worker without pages was killed, so once more\n`);
  }
  throw new Error(
    `${TRIES_MAX} kills of a worker of ${each.name} lost nothing: does it still work as it did?`,
  );
}

function batchesOf(dir: string): number {
  const db = new DatabaseSync(join(dir, 'seine.db'), { readOnly: true });
  try {
    return Number(db.prepare('SELECT sum(batches) AS batches FROM counters').get()!.batches);
  } finally {
    db.close();
  }
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
const rows: string[] = [];
for (const each of CASES) {
  const alone = await scrape(each, 0);
  const struck = await scrapeWithLoss(each, alone);
  const boundMs = alone.ms * TIMES_MAX + each.kills * each.noticedMs;
  const boundBatches = Math.ceil(alone.batches * TIMES_MAX) + each.kills * 8;
  if (struck.ms > boundMs || struck.batches > boundBatches) process.exitCode = 1;
  const cells = [
    ...[each.kills, seconds(alone.ms), seconds(struck.ms), seconds(boundMs)],
    ...[alone.batches, struck.batches, boundBatches, struck.requests - alone.requests],
  ];
  rows.push(`| ${each.name} | ${cells.join(' | ')} |`);
  process.stdout.write(`${rows.at(-1)}\n`);
}
const table = [
  '| workers | killed | time undisturbed | with kills | bar | batches undisturbed | with kills | bar | pages fetched again |',
  '|---|--:|--:|--:|--:|--:|--:|--:|--:|',
  ...rows,
].join('\n');
if (values.write) replaceBetween('docs/reliability.md', 'lost-workers', table);
