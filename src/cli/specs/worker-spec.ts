import { blobs, type CommandSpec, config, dispatch, help, json, metrics, workers } from './command-spec.ts';

/** The commands of machines that work for a coordinator elsewhere. */
export const WORKER: CommandSpec = {
  args: '',
  argsMax: 0,
  summary: 'Process batches from a Redis queue until stopped.',
  details:
    'It needs the same --blobs as the runs it works for. It does not need access to their store. On SIGINT or SIGTERM it returns unfinished tasks to the queue and exits.',
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
  summary: 'Show the live workers of a queue.',
  options: { dispatch, json: { ...json, doc: 'Print one line of JSON per worker.' }, config, help },
  examples: ['seine workers --dispatch bullmq://redis.example:6379'],
};
