import {
  blobs,
  type CommandSpec,
  config,
  dispatch,
  everywhere,
  help,
  json,
  metrics,
  workers,
} from './command-spec.ts';

/** The commands of machines that work for a coordinator elsewhere. */
export const WORKER: CommandSpec = {
  args: '',
  argsMax: 0,
  summary: 'Process batches from a Redis queue until stopped.',
  details:
    'It needs the same --blobs as the runs it works for. It does not need access to their store. On SIGINT or SIGTERM it returns unfinished tasks to the queue and exits. `seine drain` lets it finish its batches first.',
  options: {
    dispatch,
    blobs,
    kind: {
      kind: 'value',
      value: 'http|browser',
      doc: 'Which batches it takes: http only those that need no browser, browser all of them. Default: http',
    },
    workers,
    'allow-private': {
      kind: 'flag',
      doc: 'Allow loopback and private addresses for jobs with allowPrivate.',
    },
    metrics,
    config,
    help,
  },
  examples: ['seine worker --dispatch bullmq://redis.example:6379 --blobs s3://bucket/crawls --workers 4'],
};

export const FLEET_KEY: CommandSpec = {
  args: 'create [file]',
  argsMax: 2,
  summary: 'Make a key that signs and encrypts what coordinators and workers send each other through Redis.',
  details:
    'It is printed, or written to a new file that only you can read. Give it to every coordinator and worker as SEINE_FLEET_KEY or SEINE_FLEET_KEY_FILE, and never put it into Redis.',
  options: { json: { ...json, doc: 'Print the file, or the key, as JSON.' }, help },
  examples: ['seine fleet-key create', 'seine fleet-key create fleet.key'],
};

export const WORKERS: CommandSpec = {
  args: '',
  argsMax: 0,
  summary: 'Show workers: their CPU, memory and batches.',
  details:
    'With a queue, those that are alive there. Without one, or with --past, those that worked for jobs of the folder or database within the last 14 days.',
  options: {
    dispatch,
    past: {
      kind: 'flag',
      doc: 'Show the workers that the folder or database knows, also those that have ended.',
    },
    wanted: {
      kind: 'flag',
      doc: 'Show how many workers the running jobs could use, and why.',
    },
    json: { ...json, doc: 'Print one line of JSON per worker, or one with --wanted.' },
    ...everywhere,
  },
  examples: [
    'seine workers --dispatch bullmq://redis.example:6379',
    'seine workers --past',
    'seine workers --wanted --json',
  ],
};

export const DRAIN: CommandSpec = {
  args: '<worker>',
  argsMax: 1,
  summary: 'Let a worker of a queue finish the batches it has, take no more, and exit.',
  details: 'It exits with code 0, so a service manager that restarts only after failures leaves it stopped.',
  options: {
    dispatch,
    wait: { kind: 'flag', doc: 'Return when the worker has exited.' },
    json: { ...json, doc: 'Print the worker and its batches as JSON.' },
    config,
    help,
  },
  examples: ['seine drain worker-3-711-9f2c --dispatch bullmq://redis.example:6379 --wait'],
};
