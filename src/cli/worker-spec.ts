import { blobs, type CommandSpec, config, dispatch, help, json, workers } from './command-spec.ts';

/** The commands of machines that work for a coordinator elsewhere. */
export const WORKER: CommandSpec = {
  args: '',
  argsMax: 0,
  summary: 'Work on batches from a queue in Redis, until stopped.',
  details:
    'It needs the same --blobs as the runs that it works for, and no access to their store. A signal ends it gently: what it has goes back.',
  options: {
    dispatch,
    blobs,
    kind: {
      kind: 'value',
      value: 'http|browser',
      doc: 'What it can do; one with a browser takes all batches. Default: http',
    },
    workers,
    'allow-private': {
      kind: 'flag',
      doc: 'Let jobs that allow it reach loopback and private addresses.',
    },
    config,
    help,
  },
  examples: ['seine worker --dispatch bullmq://redis.example:6379 --blobs s3://bucket/crawls --workers 4'],
};

export const WORKERS: CommandSpec = {
  args: '',
  argsMax: 0,
  summary: 'Show the workers that are alive in a queue.',
  options: { dispatch, json: { ...json, doc: 'One line of JSON for each worker.' }, config, help },
  examples: ['seine workers --dispatch bullmq://redis.example:6379'],
};
