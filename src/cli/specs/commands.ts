import {
  type CommandSpec,
  dispatch,
  everywhere,
  failOn,
  help,
  json,
  limits,
  pace,
  storedPace,
  withBlobs,
  workers,
} from './command-spec.ts';
import { KEYS } from './key-spec.ts';
import { LAMBDA } from './lambda-spec.ts';
import { forecastSpec, listOptions, REFRESH, RUN } from './run-spec.ts';
import { COMPLETION, INIT, SHOP, TRY } from './setup-spec.ts';
import { DRAIN, FLEET_KEY, WORKER, WORKERS } from './worker-spec.ts';

export type { CommandSpec, OptionSpec } from './command-spec.ts';

/** Every command and option, once: parsing, `--help` and docs/cli.md come from here. */

export const COMMANDS: Record<string, CommandSpec> = {
  init: INIT,
  try: TRY,
  run: RUN,
  forecast: forecastSpec(),
  ui: {
    args: '',
    argsMax: 0,
    summary: 'Show the jobs of the folder or database in a browser, read-only, until stopped.',
    details:
      'It works beside a run and after it. `seine serve` has the same page, on which jobs can be changed too.',
    options: {
      listen: {
        kind: 'value',
        value: 'address:port',
        doc: 'Where the dashboard is served. Port 0 takes a free one. Default: 127.0.0.1:7421',
      },
      json: { kind: 'flag', doc: 'Print the address as JSON.' },
      ...withBlobs,
    },
    examples: ['seine ui', 'seine ui --dir .seine/demo --listen 127.0.0.1:0'],
  },
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
        doc: 'Where the dashboard and the API are served, with /healthz and /readyz. Port 0 takes a free one. Default: 127.0.0.1:7420',
      },
      'allow-private': {
        kind: 'flag',
        doc: 'Allow jobs of the API to fetch loopback and private addresses.',
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
    options: { workers, dispatch, ...limits, ...storedPace, 'fail-on': failOn, json, ...withBlobs },
    examples: ['seine resume', 'seine resume shop --rate 10 --max-pages 10000'],
  },
  refresh: REFRESH,
  worker: WORKER,
  workers: WORKERS,
  drain: DRAIN,
  'fleet-key': FLEET_KEY,
  keys: KEYS,
  mcp: {
    args: '',
    argsMax: 0,
    summary: 'Offer scrapes and batches of the running server to language models, over MCP.',
    details:
      'Speaks MCP over stdin and stdout with the program that starts it. `seine serve` must run in the same folder.',
    options: { ...everywhere },
    examples: ['seine mcp', 'seine mcp --dir /var/lib/seine'],
  },
  lambda: LAMBDA,
  status: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show the counters of a job, running or not.',
    options: { json, ...everywhere },
    examples: ['seine status', 'seine status shop --json'],
  },
  top: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show the dashboard of a job that runs elsewhere, until it ends. Changes nothing.',
    details:
      'Reads the folder, PostgreSQL or a server. `run`, `serve` and other machines may run the job.\n' +
      'For a server, the job is named as in its API: job_12, or by its name.',
    options: {
      server: { kind: 'value', value: 'url', doc: 'Ask the API of this server instead of a folder.' },
      'key-file': {
        kind: 'value',
        value: 'file',
        doc: 'File with the API key for the server; read scope is enough.',
      },
      json: { kind: 'flag', doc: 'Print the figures of the dashboard once, as JSON.' },
      ...everywhere,
    },
    examples: [
      'seine top',
      'seine top shop --store postgres://…',
      'seine top shop --server https://seine.example --key-file key',
    ],
  },
  explain: {
    args: '[job]',
    argsMax: 1,
    summary:
      'Say why a job is not faster: where its time goes, its bottleneck, and what a change would gain.',
    details:
      'Works while the job runs and afterwards. See docs/explain.md for the states of slots and what can be changed.',
    options: {
      'what-if': {
        kind: 'values',
        value: 'change',
        doc: 'A change to predict: workers=+8, rate:shop.example=8, parallel:shop.example=4, store=2x. Repeatable.',
      },
      json,
      ...everywhere,
    },
    examples: [
      'seine explain',
      'seine explain shop --what-if workers=+8 --what-if rate:shop.example=8 --json',
    ],
  },
  receipt: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show what a job cost, line by line, against its forecast, and the result of every URL.',
    options: { json, ...everywhere },
    examples: ['seine receipt', 'seine receipt shop --json'],
  },
  hosts: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show the hosts of a job: request rate and the reason for it, robots.txt, last error.',
    details:
      '`seine export --what hosts` writes what each host was asked, as evidence that others can check with `seine verify`.',
    options: { json: { kind: 'flag', doc: 'Print one line of JSON per host.' }, ...everywhere },
    examples: ['seine hosts', 'seine hosts shop --json'],
  },
  calibrate: {
    args: '<job | url | list | job file | host>...',
    argsMax: Number.POSITIVE_INFINITY,
    summary: 'Find the rate that a host accepts, and use it in later runs.',
    details: [
      'Raises the rate step by step until the host refuses, then narrows it down and holds it. A statistical test judges each rate.',
      'It obeys robots.txt and never exceeds the rate of the job: 4 per second unless --rate or the job says otherwise.',
      'Stops at once when the host answers with 403 or a challenge. See docs/calibration.md.',
    ].join('\n'),
    options: {
      'max-requests': {
        kind: 'value',
        value: 'n',
        doc: 'Most requests for each host. Default: as many as the tested rates need',
      },
      'max-refusals': { kind: 'value', value: 'n', doc: 'Most refusals for each host. Default: 20' },
      ...pace,
      'allow-private': { kind: 'flag', doc: 'Allow loopback and private addresses.' },
      ...listOptions,
      json: { kind: 'flag', doc: 'Print one line of JSON per host.' },
      ...withBlobs,
    },
    examples: [
      'seine calibrate shop.example --rate 50',
      'seine calibrate shop.yaml',
      'seine calibrate urls.txt --rate max --max-refusals 10 --json',
    ],
  },
  verify: {
    args: '[log]',
    argsMax: 1,
    summary: 'Check that a log of hosts is whole: no entry was changed, removed or inserted.',
    details: [
      'It checks a file that `seine export --what hosts` wrote as JSONL, also as .gz; - is standard input. Without a file, all hosts of the folder are checked.',
      'It also counts gaps between requests that were shorter than permitted. See docs/politeness.md for how to check a log without Seine.',
    ].join('\n'),
    options: {
      extends: {
        kind: 'value',
        value: 'file',
        doc: 'A log that was exported earlier: the checked one must contain it, unchanged.',
      },
      json,
      ...everywhere,
    },
    examples: [
      'seine verify',
      'seine verify hosts.jsonl',
      'seine verify today.jsonl --extends yesterday.jsonl',
    ],
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
  add: {
    args: '<job> <url | file | sitemap>...',
    argsMax: Number.POSITIVE_INFINITY,
    summary: 'Add URLs to a job that runs, waits or is finished.',
    details:
      'It takes the lists that `seine run` takes. URLs that the job already has are not fetched again.\n' +
      'A running job fetches the new ones at once. A finished job goes on, at the server of the folder or with `seine resume`.',
    options: {
      priority: { kind: 'value', value: 'n', doc: 'Higher runs first, from -1000 to 1000. Default: 0' },
      ...listOptions,
      json,
      ...everywhere,
    },
    examples: [
      'seine add shop https://shop.example/new',
      'seine add shop more.csv --priority 10',
      'cut -f2 found.tsv | seine add shop -',
    ],
  },
  priority: {
    args: '<job> <pattern> <n>',
    argsMax: 3,
    takesNumbers: true,
    summary:
      'Change the priority of waiting tasks of a job, and of new ones, while it runs or before it is resumed.',
    details:
      'The pattern is a URL pattern, as in a job file, or route:name for the pages of a route. Higher runs first, from -1000 to 1000.\n' +
      'If several changes match a task, the last one counts.',
    options: { json, ...everywhere },
    examples: ["seine priority shop '/product/*' 10", 'seine priority shop route:list -5'],
  },
  dead: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show dead letters by failure code, or retry them.',
    options: {
      retry: { kind: 'flag', doc: 'Queue the selected tasks again; `seine resume` then runs them.' },
      code: { kind: 'value', value: 'code,…', doc: 'Only these failure codes.' },
      host: { kind: 'value', value: 'host', doc: 'Only this host.' },
      hosts: { kind: 'flag', doc: 'Show the dead letters of each host.' },
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
        value: 'records|tasks|attempts|media|shots|history|quality|hosts|dataset|wacz',
        doc: 'What to export; a dataset is a folder of numbered shards with the images of the job, wacz the archive of a run in one file for replay tools. Default: records',
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
      'shard-size': { kind: 'value', value: 'n', doc: 'Dataset: samples in a shard. Default: 10000' },
      'caption-column': {
        kind: 'value',
        value: 'name',
        doc: 'Dataset: the column of the list that becomes the caption, in a .txt file.',
      },
      resize: { kind: 'value', value: 'pixels', doc: 'Dataset: length of a side. Needs the package sharp.' },
      'resize-mode': {
        kind: 'value',
        value: 'keep-ratio|crop|border|stretch',
        doc: 'Dataset: how to resize. keep-ratio makes the shorter side that long. Default: keep-ratio',
      },
      encode: { kind: 'value', value: 'jpg|png|webp', doc: 'Dataset: encode all images as this.' },
      quality: { kind: 'value', value: '1-100', doc: 'Dataset: quality of encoded images. Default: 95' },
      json,
      ...withBlobs,
    },
    examples: [
      'seine export photos --what dataset -o photos --caption-column caption --resize 256',
      'seine export shop -o products.parquet',
      'seine export shop --what tasks --since 7d --format csv',
      'seine export shop-2 -o s3://bucket/shop-2.jsonl.gz',
      'seine export shop --what wacz -o shop.wacz',
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
  learn: {
    args: '<job | job file> <url…>',
    argsMax: 100,
    summary: 'Propose selectors for fields, from values that stored pages have, or from a schema.',
    details:
      'It searches the trees and the structured data of stored pages, tries what it finds on other pages of the same kind, and prints a `select` to copy. It sends no request, except with --model, and changes nothing.',
    options: {
      field: {
        kind: 'values',
        value: 'name=value',
        doc: 'A field, and its value on the first page. Repeatable.',
      },
      examples: {
        kind: 'value',
        value: 'file',
        doc: 'JSON file with values of several pages: {"https://…": {"title": "Blue mug"}}.',
      },
      schema: {
        kind: 'value',
        value: 'file',
        doc: 'JSON Schema; Seine looks for its properties by their names and types.',
      },
      limit: { kind: 'value', value: 'n', doc: 'Try on at most this many pages. Default: 60' },
      model: {
        kind: 'flag',
        doc: 'Also try selectors that a language model proposes. Seine sends it an outline of one page. Needs SEINE_MODEL_URL.',
      },
      json,
      ...withBlobs,
    },
    examples: [
      'seine learn shop https://shop.example/product/1 --field title="Blue mug" --field price=12.50',
      'seine learn shop https://shop.example/product/1 --schema product.schema.json',
    ],
  },
  repair: {
    args: '[job] [job file]',
    argsMax: 2,
    summary: 'Propose new selectors for fields that pages no longer have, with evidence from stored pages.',
    details: 'It looks for earlier values in the current pages. It sends no request and changes nothing.',
    options: {
      route: { kind: 'value', value: 'name', doc: 'Only this route.' },
      limit: { kind: 'value', value: 'n', doc: 'Compare at most this many pages. Default: 60' },
      json,
      ...withBlobs,
    },
    examples: ['seine repair shop', 'seine repair shop --route product --json'],
  },
  test: {
    args: '[job file | job]',
    argsMax: 1,
    summary:
      'Run the extraction of a job over the pages of its last run, offline, and fail if records differ.',
    details:
      'For pipelines: it makes no request and changes nothing. It ends with code 6 if a value or the fill rate of a field changes, a record is new or gone, or a page no longer parses.',
    options: {
      against: {
        kind: 'value',
        value: 'run',
        doc: 'The run to compare with, such as shop-2. Default: the last one of the job',
      },
      ignore: { kind: 'value', value: 'field,…', doc: 'Fields that may change.' },
      limit: { kind: 'value', value: 'n', doc: 'Parse at most this many pages.' },
      json,
      ...withBlobs,
    },
    examples: ['seine test shop.ts', 'seine test shop.ts --against shop-2 --ignore rating,stock'],
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
  shop: SHOP,
  browser: {
    args: 'install',
    argsMax: 1,
    summary: 'Fetch a Chromium once, for machines that have none.',
    details:
      'Fetches the npm package @sparticuz/chromium into the cache folder of this user and unpacks it. It fetches nothing if the package is already there.',
    options: { json, ...everywhere },
    examples: ['seine browser install'],
  },
  schema: {
    args: '',
    argsMax: 0,
    summary: 'Print the JSON Schema of job files, for use in editors.',
    options: { help },
    examples: ['seine schema > seine-job.schema.json'],
  },
  completion: COMPLETION,
};

/** By own name only: `toString` is no command. */
export function commandOf(name: string): CommandSpec | null {
  return Object.hasOwn(COMMANDS, name) ? (COMMANDS[name] ?? null) : null;
}
