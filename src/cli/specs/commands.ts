import {
  type CommandSpec,
  dispatch,
  everywhere,
  help,
  json,
  limits,
  storedPace,
  withBlobs,
  workers,
} from './command-spec.ts';
import { LAMBDA } from './lambda-spec.ts';
import { REFRESH, RUN } from './run-spec.ts';
import { FLEET_KEY, WORKER, WORKERS } from './worker-spec.ts';

export type { CommandSpec, OptionSpec } from './command-spec.ts';

/** Every command and option, once: parsing, `--help` and docs/cli.md come from here. */

export const COMMANDS: Record<string, CommandSpec> = {
  run: RUN,
  serve: {
    args: '[job files…]',
    argsMax: 1_000,
    summary: 'Run all jobs of the folder at the same time, and keep their schedules, until stopped.',
    details: [
      'Jobs that were interrupted go on at once. With an empty folder it waits for jobs.',
      'A job file without a schedule runs when it is new or has changed; one with a schedule runs at its times.',
      'Other commands for the same folder talk to the server: `seine run` submits a job and follows it.',
    ].join('\n'),
    options: {
      jobs: {
        kind: 'value',
        value: 'folder',
        doc: 'Use all job files in this folder, also those added later.',
      },
      listen: {
        kind: 'value',
        value: 'address:port',
        doc: 'Where /healthz and /readyz are served. Port 0 takes a free one. Default: 127.0.0.1:7420',
      },
      workers,
      dispatch,
      json: { kind: 'flag', doc: 'Print one line of JSON when ready, and one per run.' },
      ...withBlobs,
    },
    examples: [
      'seine serve',
      'seine serve shop.yaml news.yaml',
      'seine serve --jobs ./jobs --listen 127.0.0.1:0',
    ],
  },
  resume: {
    args: '[job]',
    argsMax: 1,
    summary: 'Continue a job that was stopped, interrupted, or stopped by its circuit breaker.',
    options: { workers, dispatch, ...limits, ...storedPace, json, ...withBlobs },
    examples: ['seine resume', 'seine resume shop --rate 10 --max-pages 10000'],
  },
  refresh: REFRESH,
  worker: WORKER,
  workers: WORKERS,
  'fleet-key': FLEET_KEY,
  lambda: LAMBDA,
  status: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show the counters of a job, running or not.',
    options: { json, ...everywhere },
    examples: ['seine status', 'seine status shop --json'],
  },
  hosts: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show the hosts of a job: request rate and what limits it, robots.txt, last error.',
    details: '`seine export --what hosts` writes the same data to a file, as evidence of polite crawling.',
    options: { json: { kind: 'flag', doc: 'Print one line of JSON per host.' }, ...everywhere },
    examples: ['seine hosts', 'seine hosts shop --json'],
  },
  proxies: {
    args: '',
    argsMax: 0,
    summary: 'Show the health of proxies: which are paused, until when, and for which hosts.',
    details: 'Credentials are never shown. All jobs of the folder share this data.',
    options: { json: { kind: 'flag', doc: 'Print one line of JSON per proxy.' }, ...everywhere },
    examples: ['seine proxies', 'seine proxies --json'],
  },
  jobs: {
    args: '',
    argsMax: 0,
    summary: 'List the jobs of the folder.',
    options: { json, ...everywhere },
    examples: ['seine jobs'],
  },
  stop: {
    args: '[job]',
    argsMax: 1,
    summary: 'Stop a running job; `seine resume` continues it.',
    options: { json, ...everywhere },
    examples: ['seine stop shop'],
  },
  cancel: {
    args: '[job]',
    argsMax: 1,
    summary: 'End a job permanently. Its results are kept.',
    options: { json, ...everywhere },
    examples: ['seine cancel shop'],
  },
  priority: {
    args: '<job> <pattern> <n>',
    argsMax: 3,
    takesNumbers: true,
    summary:
      'Change the priority of waiting tasks of a job, and of new ones, while it runs or before it is resumed.',
    details:
      'The pattern is one of URLs, as in a job file, or route:name for the pages of a route. Higher runs first, from -1000 to 1000.\n' +
      'The last change that is about a task holds.',
    options: { json, ...everywhere },
    examples: ["seine priority shop '/product/*' 10", 'seine priority shop route:list -5'],
  },
  dead: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show dead letters by failure code and host, or retry them.',
    options: {
      retry: { kind: 'flag', doc: 'Queue the selected tasks again; `seine resume` then runs them.' },
      code: { kind: 'value', value: 'code', doc: 'Only this failure code.' },
      host: { kind: 'value', value: 'host', doc: 'Only this host.' },
      url: { kind: 'value', value: 'text', doc: 'Only URLs that contain this text.' },
      json,
      ...everywhere,
    },
    examples: ['seine dead', 'seine dead shop --code server-error --retry'],
  },
  export: {
    args: '[job]',
    argsMax: 1,
    summary: 'Write records, tasks and more to standard output, a file or S3.',
    details:
      'A job name exports the records of all its runs. A name with a run number (shop-2) exports the records that this run wrote last.',
    options: {
      what: {
        kind: 'value',
        value: 'records|tasks|attempts|media|shots|history|quality|hosts',
        doc: 'What to export. Default: records',
      },
      format: {
        kind: 'value',
        value: 'jsonl|csv|parquet',
        doc: 'Output format. Default: from the output file name, otherwise jsonl',
      },
      'csv-safe': {
        kind: 'flag',
        doc: 'For spreadsheets: put a single quote before CSV cells that start with = + - @, a tab or a carriage return.',
      },
      since: {
        kind: 'value',
        value: 'date|duration',
        doc: 'Only rows changed since a date, or within a duration: 2026-01-31, 7d, 12h.',
      },
      output: {
        kind: 'value',
        value: 'file|s3://…',
        short: 'o',
        doc: 'Where to write, instead of standard output. A name that ends in .gz is compressed.',
      },
      ...withBlobs,
    },
    examples: [
      'seine export shop -o products.parquet',
      'seine export shop --what tasks --since 7d --format csv',
      'seine export shop-2 -o s3://bucket/shop-2.jsonl.gz',
    ],
  },
  reparse: {
    args: '[job] [job file]',
    argsMax: 2,
    summary: 'Parse the stored pages again with the current code, without any request.',
    details:
      'It uses the given job file, or the file that the job was started from. It prints how many values change in each field.',
    options: {
      'dry-run': { kind: 'flag', doc: 'Show what would change without writing anything.' },
      limit: { kind: 'value', value: 'n', doc: 'Parse at most this many pages.' },
      json,
      ...withBlobs,
    },
    examples: ['seine reparse shop --dry-run', 'seine reparse shop job.ts'],
  },
  sheet: {
    args: '[job]',
    argsMax: 1,
    summary: 'Write the contact sheet of a job: all its screenshots on one page.',
    options: { json, ...withBlobs },
    examples: ['seine sheet', 'seine sheet shop'],
  },
  page: {
    args: '<url>',
    argsMax: 1,
    summary: 'Print a stored page.',
    options: {
      job: { kind: 'value', value: 'job', doc: 'The job to read from. Default: the newest' },
      headers: { kind: 'flag', doc: 'Print the response headers first.' },
      screenshot: { kind: 'flag', doc: 'Write the screenshot to standard output instead.' },
      ...withBlobs,
    },
    examples: ['seine page https://shop.example/', 'seine page https://shop.example/ --headers'],
  },
  doctor: {
    args: '',
    argsMax: 0,
    summary: 'Check the machine, the settings and every service they name, and say what to fix.',
    options: {
      workers,
      dispatch,
      browser: { kind: 'flag', doc: 'Also render a page with Chromium.' },
      json,
      ...withBlobs,
    },
    examples: ['seine doctor', 'seine doctor --store postgres://… --dispatch bullmq://… --blobs s3://…'],
  },
  hostile: {
    args: '',
    argsMax: 0,
    summary:
      'Serve a hostile test site: decompression bombs, false headers, crawler traps and stalled responses.',
    details: 'Listens on 127.0.0.1 only. The start page lists every case and how a crawler should handle it.',
    options: {
      port: {
        kind: 'value',
        value: 'n',
        doc: 'Port for plain HTTP; the next five ports are for TLS. Default: free ports',
      },
      list: { kind: 'flag', doc: 'List the cases and exit.' },
      json: { kind: 'flag', doc: 'Print the URLs, or the list, as JSON.' },
      help,
    },
    examples: ['seine hostile --port 8080', 'seine hostile --list'],
  },
  schema: {
    args: '',
    argsMax: 0,
    summary: 'Print the JSON Schema of job files, for use in editors.',
    options: { help },
    examples: ['seine schema > seine-job.schema.json'],
  },
};

/** By own name only: `toString` is no command. */
export function commandOf(name: string): CommandSpec | null {
  return Object.hasOwn(COMMANDS, name) ? (COMMANDS[name] ?? null) : null;
}
