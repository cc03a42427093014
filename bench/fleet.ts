/** The fleet scenario: the same crawl over other stores and workers, and the coordinator without any. */
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import type { Contender } from './contenders/contender.ts';
import {
  bullmqContender,
  coordinatorContender,
  type FleetServices,
  postgresContender,
  threads,
  workerArguments,
} from './contenders/fleet.ts';
import { measureOnce, type Sample } from './measure.ts';
import { openOrigin } from './open-origin.ts';
import type { Origin } from './origin-nginx.ts';
import { type Row, summarise } from './report/crawl-verdict.ts';
import { type FleetData, fleetSection, judgeFleet, printFleet } from './report/fleet-section.ts';
import { describeMachine, describeVersions } from './report/machine.ts';
import type { BenchOptions, Scenario, ScenarioResult } from './scenario.ts';
import type { Scratch } from './scratch.ts';
import { writeSite } from './site.ts';
import { measureSettle } from './store-rates.ts';

const say = (text: string): void => void process.stderr.write(`${text}\n`);
/** Tasks of the runs without workers, for each page of those with. */
const TASKS_PER_PAGE = 3;
const WORKERS = 2;

async function startServices(scratch: Scratch, databases: number): Promise<FleetServices> {
  // Runs and workers have it: a fleet is measured as it is used, with messages that are signed.
  process.env.SEINE_FLEET_KEY ??= randomBytes(32).toString('base64url');
  const { startPostgres, startRedis } = await import('../test/support/servers/services.ts');
  const postgres = await startPostgres({ own: true, fsync: true });
  scratch.onEnd(() => postgres.stop());
  const redis = await startRedis({ own: true });
  scratch.onEnd(() => redis.stop());
  const free: string[] = [];
  for (let index = 0; index < databases; index++) free.push(await postgres.createDatabase());
  return {
    newDatabase() {
      const url = free.pop();
      if (!url) throw new Error('more runs than databases');
      return url;
    },
    redisUrl: redis.url,
    blobs: scratch.diskFolder('blobs'),
  };
}

interface Tally {
  contender: Contender;
  pages: number;
  samples: Sample[];
  missing?: string;
}

async function runTurn(tally: Tally, origin: Origin, scratch: Scratch, isTimed: boolean): Promise<void> {
  const { contender, pages } = tally;
  if (tally.missing !== undefined) return;
  try {
    const sample = await measureOnce(scratch, origin, contender, pages);
    if (isTimed) tally.samples.push(sample);
    const rate = Math.round(sample.pages / sample.seconds);
    say(`  ${contender.id.padEnd(22)} ${rate} /s, others took ${Math.round(sample.othersShare * 100)} %`);
  } catch (error) {
    tally.missing = error instanceof Error ? error.message : String(error);
    say(`  ${contender.id.padEnd(22)} left out: ${tally.missing}`);
  }
}

async function run(options: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const site = scratch.memoryFolder('site');
  say(`Writing ${options.pages} pages to ${site} …`);
  writeSite(site, options.pages, options.markup);
  const origin = await openOrigin(scratch, site, options.originWorkers);
  const services = await startServices(scratch, 3 * (options.rounds + 1));
  const tasks = options.pages * TASKS_PER_PAGE;
  const tallies: Tally[] = [
    { contender: threads, pages: options.pages, samples: [] },
    { contender: postgresContender(services), pages: options.pages, samples: [] },
    { contender: bullmqContender(services), pages: options.pages, samples: [] },
    { contender: coordinatorContender(null), pages: tasks, samples: [] },
    { contender: coordinatorContender(services), pages: tasks, samples: [] },
    { contender: coordinatorContender(services, 2), pages: tasks, samples: [] },
  ];
  for (let round = 0; round <= options.rounds; round++) {
    say(round === 0 ? 'Warm-up' : `Round ${round} of ${options.rounds}`);
    for (const tally of tallies) {
      const workers = tally.contender.id === 'bullmq' ? await startWorkers(scratch, services) : [];
      await runTurn(tally, origin, scratch, round > 0);
      await Promise.all(workers.map((worker) => worker.end()));
    }
  }
  const settle = await measureSettle(options.pages);
  await origin.close();
  const data: FleetData = {
    date: new Date().toISOString(),
    machine: describeMachine(),
    versions: { ...describeVersions(), origin: origin.kind },
    pages: options.pages,
    tasks,
    rounds: options.rounds,
    rows: tallies.map(
      ({ contender, samples, missing }): Row => summarise(contender, samples, undefined, missing),
    ),
    settle,
  };
  const verdicts = judgeFleet(data);
  printFleet(data);
  return { verdicts, data, section: fleetSection(data, verdicts) };
}

interface StartedWorker {
  end(): Promise<void>;
}

/**
 * Workers of a fleet are there before the job is. They run only while they are wanted: idle ones would still ask Redis for work
 * during the others' turns.
 */
function startWorkers(scratch: Scratch, services: FleetServices): Promise<StartedWorker[]> {
  return Promise.all(Array.from({ length: WORKERS }, () => startWorker(scratch, services)));
}

async function startWorker(scratch: Scratch, services: FleetServices): Promise<StartedWorker> {
  const child = scratch.spawn(process.execPath, workerArguments(services), {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const lines = createInterface({ input: child.stderr! });
  const ready = new Promise<void>((resolve) => {
    lines.on('line', (line) => {
      say(`  ${line}`);
      if (/^worker .* takes /.test(line)) resolve();
    });
  });
  await Promise.race([ready, ended]);
  return {
    end: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

export const scenario: Scenario = {
  name: 'fleet',
  summary: 'pages per second over PostgreSQL and BullMQ, against SQLite and threads',
  run,
};
