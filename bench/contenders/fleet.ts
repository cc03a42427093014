import { join } from 'node:path';
import { nodeFlags } from '../node-flags.ts';
import { type Contender, childScript, ROOT_FOLDER, readPlain } from './contender.ts';
import { seineContender } from './seine.ts';

/** What a fleet is made of, started before the rounds. */
export interface FleetServices {
  /** A database of its own for each run. */
  newDatabase(): string;
  redisUrl: string;
  /** Where coordinator and workers keep pages. */
  blobs: string;
}

export const threads: Contender = { ...seineContender('links'), id: 'threads', label: 'SQLite, 2 threads' };

export function postgresContender({ newDatabase }: FleetServices): Contender {
  return {
    ...threads,
    id: 'postgres',
    label: 'PostgreSQL, 2 threads',
    keeps: 'PostgreSQL + WARC',
    command: (plan) => {
      const { args } = threads.command(plan);
      return { args: [...args, '--store', newDatabase()] };
    },
  };
}

export function bullmqContender({ redisUrl, blobs }: FleetServices): Contender {
  let run = 0;
  return {
    ...threads,
    id: 'bullmq',
    label: 'SQLite, BullMQ, 2 worker processes',
    command: (plan) => {
      const { args } = threads.command(plan);
      const dispatch = redisUrl.replace('redis:', 'bullmq:');
      // Runs of one name would write over each other's pages in the shared folder.
      const named = args.map((arg) => (arg === 'bench' ? `bench-${++run}` : arg));
      return { args: [...named, '--dispatch', dispatch, '--blobs', blobs] };
    },
  };
}

export function workerArguments({ redisUrl, blobs }: FleetServices): string[] {
  const binary = join(ROOT_FOLDER, 'bin', 'seine.js');
  const dispatch = redisUrl.replace('redis:', 'bullmq:');
  return [
    ...nodeFlags(),
    binary,
    'worker',
    '--dispatch',
    dispatch,
    '--blobs',
    blobs,
    '--workers',
    '1',
    '--allow-private',
  ];
}

/** Coordinators alone, one or several of the same job: their workers answer at once. */
export function coordinatorContender(services: FleetServices | null, coordinators: 1 | 2 = 1): Contender {
  const name = services ? 'PostgreSQL' : 'SQLite';
  const which = coordinators === 1 ? 'coordinator alone' : 'two coordinators of one job';
  return {
    id: coordinators === 2 ? 'two-coordinators' : services ? 'coordinator-postgres' : 'coordinator',
    label: `${which}, ${name}, workers that answer at once`,
    mode: 'links',
    keeps: name,
    missing: () => undefined,
    command: ({ folder, pages }) => ({
      args: [
        ...nodeFlags(),
        '--disable-warning=ExperimentalWarning',
        childScript('coordinator-child.ts'),
        folder,
        String(pages),
        ...(services ? [services.newDatabase(), String(coordinators)] : []),
      ],
    }),
    read: readPlain,
  };
}
