import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { checkJob } from '../crash/check-folder.ts';
import { collect } from '../fixtures.ts';
import { lastJson, startSeine, temporaryFolder } from '../seine-process.ts';
import { startPostgres } from '../servers/services.ts';
import { startSiteProcess } from '../sites/site-process.ts';

interface TwoCoordinatorsFacts {
  kills: number;
  pages: number;
  /** Pages that were never asked for, or have no done task at the end. */
  lost: number;
  unreadable: number;
  /** Requests beyond one a page. */
  refetched: number;
  /** Most requests that can be out when a coordinator is killed. */
  inFlightMax: number;
  /** Settled visits: one a page when nothing is settled twice. */
  attempts: number;
  /** Between two requests of a host, by the clocks of those that sent them. */
  smallestGapMs: number;
  /** The same as the site saw it: a machine that starts and ends processes delays what was sent. */
  smallestArrivalGapMs: number;
  /** From a kill until the next page was asked for. */
  slowestReturnMs: number;
  seconds: number;
}

const WORKERS = 2;
/** Open batches at once: a thread has up to eight. */
const BATCHES_MAX = WORKERS * 8;

/** Two coordinators, each with its own workers, share a job from the first moment on; first one is killed, then the other. */
export async function runTwoCoordinators(options: {
  hosts: number;
  pagesPerHost: number;
  rate: number;
  batchSize: number;
}): Promise<TwoCoordinatorsFacts> {
  const { hosts, pagesPerHost, rate, batchSize } = options;
  const startedAt = performance.now();
  const folder = temporaryFolder();
  const site = await startSiteProcess();
  const server = await startPostgres({ own: true, fsync: true });
  const started: ReturnType<typeof startSeine>[] = [];
  try {
    const hostOf = (index: number) => `127.0.${1 + Math.floor(index / 25)}.${1 + (index % 25)}:${site.port}`;
    const urls: string[] = [];
    for (let page = 0; page < pagesPerHost; page++)
      for (let host = 0; host < hosts; host++) urls.push(`http://${hostOf(host)}/page/${page}.html`);
    const list = join(folder.path, 'urls.txt');
    writeFileSync(list, urls.join('\n'));
    const jobFile = join(folder.path, 'fleet.json');
    const politeness = { rate, adaptive: false };
    writeFileSync(jobFile, JSON.stringify({ sources: [list], allowPrivate: true, politeness, batchSize }));
    const store = await server.createDatabase();
    const blobs = join(folder.path, 'blobs');
    const start = (name: string) => {
      const places = ['--dir', join(folder.path, name), '--blobs', blobs, '--store', store];
      const run = startSeine(['run', jobFile, '--workers', String(WORKERS), ...places, '--json']);
      started.push(run);
      return run;
    };
    let slowestReturnMs = 0;
    const kill = async (run: ReturnType<typeof startSeine>) => {
      await run.killTree();
      const killedAt = performance.now();
      await site.requests((await site.count()) + 1);
      slowestReturnMs = Math.max(slowestReturnMs, performance.now() - killedAt);
    };

    const a = start('a');
    const b = start('b');
    await site.requests(urls.length * 0.2);
    await kill(a);
    const again = start('a');
    await site.requests(urls.length * 0.5);
    await kill(b);
    const last = await again.finished;
    if (last.code !== 0 || last.stderr !== '')
      throw new Error(`the run ended with code ${last.code}: ${last.stderr}`);
    const summary = lastJson(last);
    if (summary.state !== 'done' || summary.done !== urls.length || summary.run !== 1)
      throw new Error(`the summary is wrong: ${JSON.stringify(summary)}`);

    const log = await site.log();
    const counts = new Map<string, number>();
    for (const { host, path } of log) {
      const url = `http://${host}${path}`;
      counts.set(url, (counts.get(url) ?? 0) + 1);
    }
    const opened = await openPostgresStore(store);
    const archive = await openFolderBlobs(blobs);
    const { doneUrls, unreadable } = await checkJob(opened, archive, 'fleet', 1);
    const [found] = await opened.jobs.list(1);
    // Of what was lost it is only known that it was sent, not when.
    const attempts = (await collect(opened.views.attempts(found!.id))).filter(
      ({ outcome }) => outcome !== 'lost',
    );
    await archive.close();
    await opened.close();
    const sent = attempts.map(({ url, startedAt: at }) => ({ host: new URL(url).host, at: Date.parse(at) }));
    return {
      ...{ kills: 2, pages: urls.length, attempts: attempts.length, unreadable: unreadable.length },
      lost: urls.filter((url) => !counts.has(url) || !doneUrls.has(url)).length,
      refetched: urls.reduce((sum, url) => sum + Math.max(0, (counts.get(url) ?? 0) - 1), 0),
      inFlightMax: BATCHES_MAX * batchSize,
      smallestGapMs: smallestGap(sent.map((each) => ({ ...each, noEarlierThan: each.at }))),
      smallestArrivalGapMs: smallestGap(log),
      slowestReturnMs,
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    };
  } finally {
    for (const run of started) await run.killTree();
    await site.close();
    await server.stop();
    folder.remove();
  }
}

/** The shortest time between two requests of a host, in a log in any order. */
function smallestGap(log: { host: string; at: number; noEarlierThan: number }[]): number {
  const lastAt = new Map<string, number>();
  let smallest = Number.POSITIVE_INFINITY;
  for (const { at, noEarlierThan, host } of log.toSorted((one, other) => one.at - other.at)) {
    smallest = Math.min(smallest, at - (lastAt.get(host) ?? Number.NEGATIVE_INFINITY));
    lastAt.set(host, noEarlierThan);
  }
  return smallest;
}
