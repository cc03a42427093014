import { SETTINGS } from '../../config/schema.ts';
import {
  type CommandSpec,
  dispatch,
  failOn,
  json,
  limits,
  metrics,
  type OptionSpec,
  pace,
  storedPace,
  withBlobs,
  workers,
} from './command-spec.ts';

/** Of `run`, what says how a run is begun and followed. */
const OF_RUNS = ['fresh', 'refresh', 'watch', 'dry-run', 'json'];

/** What `run` takes, and how it is found out. */
export const forecastSpec = (): CommandSpec => ({
  args: RUN.args,
  argsMax: RUN.argsMax,
  summary: 'Say how long a run will take and what it will cost, from a sample or from earlier runs.',
  details:
    'The sample is a small run of its own: some of the pages, at the same rates. It obeys robots.txt. It is used again for an hour.\n' +
    'If the job has finished before, the forecast uses its last run and requests nothing, unless you give --sample.',
  options: {
    sample: {
      kind: 'value',
      value: 'n',
      doc: 'Requests of the sample; 0 sends none and assumes usual values. Default: 200',
    },
    ...Object.fromEntries(Object.entries(RUN.options).filter(([name]) => !OF_RUNS.includes(name))),
    json: { kind: 'flag', doc: 'Print the forecast as one line of JSON.' },
  },
  examples: ['seine forecast urls.txt', 'seine forecast https://shop.example/ --follow --sample 100 --json'],
});

export const REFRESH: CommandSpec = {
  args: '[job]',
  argsMax: 1,
  summary: 'Fetch the URLs of a job again if they are due, with the definition of its last run.',
  details:
    'It also reads the sources again. To use the current job file instead, run `seine run job.ts --refresh`.',
  options: { workers, dispatch, ...limits, ...storedPace, 'fail-on': failOn, json, ...withBlobs },
  examples: ['seine refresh', 'seine refresh shop --json'],
};

/** How the lists of a command line are read. */
export const listOptions: Record<string, OptionSpec> = {
  'url-column': {
    kind: 'value',
    value: 'name',
    doc: 'Column or property of a list that holds the URL. Default: url, page_url, image_url or link',
  },
  meta: {
    kind: 'values',
    value: 'column',
    doc: 'Column of a list to copy to the result. Repeatable. Default: all',
  },
  format: {
    kind: 'value',
    value: 'txt|csv|jsonl|parquet|sitemap',
    doc: 'Format of the lists; a URL argument is then read as a list. Default: from the file name, txt for standard input',
  },
  route: {
    kind: 'value',
    value: 'name',
    doc: 'Route for URLs from lists and sitemaps; @media stores them as files. Default: the route that matches the URL',
  },
};

/** The options of `run`, which has more of them than all other commands. */
export const RUN: CommandSpec = {
  args: '<url | file | sitemap | job file>...',
  argsMax: Number.POSITIVE_INFINITY,
  summary: 'Scrape URLs, a list of URLs, or a job.',
  details:
    'A list is a .txt, .csv, .tsv or .jsonl file, optionally with .gz, a .parquet file, or - for standard input.\n' +
    'Lists can be local files or s3://… objects; * matches any name.\n' +
    'sitemap:https://shop.example reads the sitemaps of a site. A job file is .ts, .js, .yaml or .json.\n' +
    'If a run was interrupted, the same command continues it, also with another pace or other limits. A run from standard input starts over; continue it with `seine resume`.',
  options: {
    follow: {
      kind: 'optional',
      value: 'host|site|any',
      implied: 'host',
      doc: 'Follow links on the same host, within the site, or to any host.',
    },
    select: {
      kind: 'values',
      value: 'name=css',
      doc: 'Extract a field from each page; css@attr extracts an attribute. Repeatable.',
    },
    depth: { kind: 'value', value: 'n', doc: 'Follow links up to this many steps from the start.' },
    ...limits,
    ...pace,
    workers,
    dispatch,
    'batch-size': {
      kind: 'value',
      value: 'n',
      doc: 'Maximum tasks in one batch. Default: 120, and up to 1,000 of hosts without a rate limit whose pages come fast',
    },
    proxies: {
      kind: 'value',
      value: 'file',
      doc: 'Send every request through a proxy of this list, one proxy per line. See docs/proxies.md.',
    },
    'user-agent': {
      kind: 'value',
      value: 'text',
      doc: 'User-Agent header. Default: Seine/<version> with your contact',
    },
    contact: { kind: 'value', value: 'url|mail', doc: SETTINGS.contact.doc },
    ...listOptions,
    media: { kind: 'flag', doc: 'The URLs are files to store (images, videos, documents), not pages.' },
    pack: {
      kind: 'value',
      value: 'none|webdataset',
      doc: 'Store media one file each, or in tar shards with a JSON file for each item. Default: none',
    },
    'media-types': {
      kind: 'value',
      value: 'types',
      doc: 'Media types to store, detected from the content: image/*,video/mp4. Default: all',
    },
    browser: {
      kind: 'optional',
      value: 'always|auto',
      implied: 'always',
      doc: 'Fetch pages with a browser; auto: only pages that need JavaScript.',
    },
    screenshot: {
      kind: 'optional',
      value: 'full|screen',
      implied: 'full',
      doc: 'Store a screenshot of the full page or of the visible screen; implies --browser.',
    },
    pdf: { kind: 'flag', doc: 'Store each page as PDF; implies --browser.' },
    'wait-for': {
      kind: 'value',
      value: 'css',
      doc: 'Wait until an element that matches this selector is visible; implies --browser.',
    },
    'no-robots': { kind: 'flag', doc: 'Ignore robots.txt. Use it only for your own sites.' },
    'no-archive': { kind: 'flag', doc: 'Do not store the pages.' },
    'allow-private': { kind: 'flag', doc: 'Allow loopback and private addresses.' },
    ui: {
      kind: 'optional',
      value: 'address:port',
      implied: '127.0.0.1:0',
      doc: 'Serve a dashboard of the run, and print its address. Without one, a free port of 127.0.0.1.',
    },
    name: { kind: 'value', value: 'name', doc: 'Name of the job. Default: the name of the host or file' },
    fresh: { kind: 'flag', doc: 'Start a new run even if the last run of this name is unfinished.' },
    refresh: {
      kind: 'flag',
      doc: 'Fetch the URLs of the last run of this name again if they are due. Unchanged pages answer with 304.',
    },
    watch: { kind: 'flag', doc: 'Keep running, and run the job again on its schedule.' },
    'fail-on': failOn,
    'dry-run': {
      kind: 'flag',
      doc: 'Check the job and say what it would do: rows, hosts, shortest time, what is stored where. With --json also the whole job.',
    },
    json: { kind: 'flag', doc: 'Print the result as one line of JSON on standard output.' },
    metrics,
    ...withBlobs,
  },
  examples: [
    'seine run https://shop.example/ --follow --max-pages 500',
    'seine run urls.txt --select title=h1 --select price=.price',
    'seine run job.ts',
    "seine run 's3://bucket/images/*.parquet' --media --pack webdataset",
    'seine run sitemap:https://shop.example',
    'seine run urls.txt --screenshot',
    'cat urls.txt | seine run - --name nightly --json',
  ],
};
