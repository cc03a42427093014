import {
  type CommandSpec,
  dispatch,
  everywhere,
  help,
  json,
  limits,
  withBlobs,
  workers,
} from './command-spec.ts';
import { LAMBDA } from './lambda-spec.ts';
import { REFRESH, RUN } from './run-spec.ts';
import { WORKER, WORKERS } from './worker-spec.ts';

export type { CommandSpec, OptionSpec } from './command-spec.ts';

/** Every command and option, once: parsing, `--help` and docs/cli.md come from here. */

export const COMMANDS: Record<string, CommandSpec> = {
  run: RUN,
  serve: {
    args: '',
    argsMax: 0,
    summary: 'Run the jobs of the folder that have a schedule, at their times, until stopped.',
    options: {
      workers,
      dispatch,
      json: { kind: 'flag', doc: 'One line of JSON for each run.' },
      ...withBlobs,
    },
    examples: ['seine serve'],
  },
  resume: {
    args: '[job]',
    argsMax: 1,
    summary: 'Continue a job that was stopped, interrupted or tripped.',
    options: { workers, dispatch, ...limits, json, ...withBlobs },
    examples: ['seine resume', 'seine resume shop --max-pages 10000'],
  },
  refresh: REFRESH,
  worker: WORKER,
  workers: WORKERS,
  lambda: LAMBDA,
  status: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show the counters of a job, also while it runs.',
    options: { json, ...everywhere },
    examples: ['seine status', 'seine status shop --json'],
  },
  hosts: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show the hosts of a job: their pace, what limits it, robots.txt, last errors.',
    details: '`seine export --what hosts` writes the same as proof of how gently each host was asked.',
    options: { json: { kind: 'flag', doc: 'One line of JSON for each host.' }, ...everywhere },
    examples: ['seine hosts', 'seine hosts shop --json'],
  },
  proxies: {
    args: '',
    argsMax: 0,
    summary: 'Show how proxies fare: which rest until when, in general and for which hosts.',
    details:
      'By name, as in logs: never with credentials. What is known is shared by all jobs of the folder.',
    options: { json: { kind: 'flag', doc: 'One line of JSON for each proxy.' }, ...everywhere },
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
    summary: 'Ask a running job to stop; resume continues it.',
    options: { json, ...everywhere },
    examples: ['seine stop shop'],
  },
  cancel: {
    args: '[job]',
    argsMax: 1,
    summary: 'End a job for good; what it has is kept.',
    options: { json, ...everywhere },
    examples: ['seine cancel shop'],
  },
  dead: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show dead letters by reason and host, or try them again.',
    options: {
      retry: { kind: 'flag', doc: 'Put the selected ones back; then `seine resume`.' },
      code: { kind: 'value', value: 'code', doc: 'Only this failure code.' },
      host: { kind: 'value', value: 'host', doc: 'Only this host.' },
      url: { kind: 'value', value: 'text', doc: 'Only URLs that contain this.' },
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
      'By its name, a job gives the records of all its runs; by name and run (shop-2), those that this run wrote last.',
    options: {
      what: {
        kind: 'value',
        value: 'records|tasks|attempts|media|shots|history|quality|hosts',
        doc: 'Default: records',
      },
      format: {
        kind: 'value',
        value: 'jsonl|csv|parquet',
        doc: 'Default: by the ending of the output, else jsonl',
      },
      since: {
        kind: 'value',
        value: 'date|duration',
        doc: 'Only rows that changed since then: 2026-01-31, 7d, 12h.',
      },
      output: {
        kind: 'value',
        value: 'file|s3://…',
        short: 'o',
        doc: 'Where to write instead of standard output; .gz is compressed.',
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
    summary: 'Read the stored pages again with the code of today, without a request.',
    details:
      'The code is that of the job file, by default the one that the job was run from. Shows what changes in which field.',
    options: {
      'dry-run': { kind: 'flag', doc: 'Show what would change, and write nothing.' },
      limit: { kind: 'value', value: 'n', doc: 'Only so many pages.' },
      json,
      ...withBlobs,
    },
    examples: ['seine reparse shop --dry-run', 'seine reparse shop job.ts'],
  },
  sheet: {
    args: '[job]',
    argsMax: 1,
    summary: 'Write the contact sheet of a job with screenshots: all its pictures on one page.',
    options: { json, ...withBlobs },
    examples: ['seine sheet', 'seine sheet shop'],
  },
  page: {
    args: '<url>',
    argsMax: 1,
    summary: 'Print a stored page.',
    options: {
      job: { kind: 'value', value: 'job', doc: 'Of which job. Default: the newest' },
      headers: { kind: 'flag', doc: 'Print the response headers first.' },
      screenshot: { kind: 'flag', doc: 'Write its picture to standard output instead.' },
      ...withBlobs,
    },
    examples: ['seine page https://shop.example/', 'seine page https://shop.example/ --headers'],
  },
  doctor: {
    args: '',
    argsMax: 0,
    summary: 'Try the machine, the settings and every part they name, and say what to fix.',
    options: {
      workers,
      dispatch,
      browser: { kind: 'flag', doc: 'Also have Chromium show a page.' },
      json,
      ...withBlobs,
    },
    examples: ['seine doctor', 'seine doctor --store postgres://… --dispatch bullmq://… --blobs s3://…'],
  },
  hostile: {
    args: '',
    argsMax: 0,
    summary:
      'Serve the hostile web on this machine: bombs, lies, traps and silence, each at a path of its own.',
    details: 'Listens on 127.0.0.1 only. The start page lists everything, and how a crawler should take it.',
    options: {
      port: {
        kind: 'value',
        value: 'n',
        doc: 'Of plain HTTP; the next five are for TLS. Default: one that is free',
      },
      list: { kind: 'flag', doc: 'Print what it can do, and serve nothing.' },
      json: { kind: 'flag', doc: 'Print its URLs, or the list, as JSON.' },
      help,
    },
    examples: ['seine hostile --port 8080', 'seine hostile --list'],
  },
  schema: {
    args: '',
    argsMax: 0,
    summary: 'Print the JSON Schema of job files, for editors.',
    options: { help },
    examples: ['seine schema > seine-job.schema.json'],
  },
};

/** By own name only: `toString` is no command. */
export function commandOf(name: string): CommandSpec | null {
  return Object.hasOwn(COMMANDS, name) ? (COMMANDS[name] ?? null) : null;
}
