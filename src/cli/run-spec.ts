import { SETTINGS } from '../config/schema.ts';
import { type CommandSpec, dispatch, json, limits, withBlobs, workers } from './command-spec.ts';

export const REFRESH: CommandSpec = {
  args: '[job]',
  argsMax: 1,
  summary: 'Visit the URLs of a job again, where they are due, as it was run last.',
  details:
    'Reads its sources again, too. `seine run job.ts --refresh` does the same with the job file of today.',
  options: { workers, dispatch, ...limits, json, ...withBlobs },
  examples: ['seine refresh', 'seine refresh shop --json'],
};

/** The options of `run`, which has more of them than all other commands. */
export const RUN: CommandSpec = {
  args: '<url | file | sitemap | job file>...',
  argsMax: Number.POSITIVE_INFINITY,
  summary: 'Scrape URLs, a list of URLs, or a job.',
  details:
    'A list is .txt, .csv, .tsv or .jsonl, each also .gz, .parquet, or - for standard input; on the disk or as s3://…, with * for any name.\n' +
    'sitemap:https://shop.example reads the sitemaps of a site. A job file is .ts, .js, .yaml or .json.\n' +
    'The same command again continues a run that was interrupted (standard input always starts anew; use resume).',
  options: {
    follow: {
      kind: 'optional',
      value: 'host|site|any',
      implied: 'host',
      doc: 'Follow links: on the same host, or within the site.',
    },
    select: {
      kind: 'values',
      value: 'name=css',
      doc: 'Take a field from each page; css@attr takes an attribute. Repeatable.',
    },
    depth: { kind: 'value', value: 'n', doc: 'How many links away from the start.' },
    ...limits,
    rate: { kind: 'value', value: 'n|max', doc: 'Requests per second and host. Default: 4' },
    parallel: {
      kind: 'value',
      value: 'n',
      doc: 'Requests at once per host. Default: 4, or 32 with --rate max',
    },
    workers,
    dispatch,
    'batch-size': { kind: 'value', value: 'n', doc: 'Most tasks in one batch. Default: 120' },
    proxies: {
      kind: 'value',
      value: 'file',
      doc: 'List of proxies, one a line, that every request goes through; see docs/proxies.md.',
    },
    'user-agent': {
      kind: 'value',
      value: 'text',
      doc: 'User-Agent header. Default: Seine/<version>, with your contact',
    },
    contact: { kind: 'value', value: 'url|mail', doc: SETTINGS.contact.doc },
    'url-column': {
      kind: 'value',
      value: 'name',
      doc: 'Column or property of lists that holds the URL. Default: url, page_url, image_url or link',
    },
    meta: {
      kind: 'values',
      value: 'column',
      doc: 'Column of lists that travels to the result. Repeatable. Default: all',
    },
    format: {
      kind: 'value',
      value: 'txt|csv|jsonl|parquet|sitemap',
      doc: 'How lists are read; also makes a URL a list. Default: by the name, txt for standard input',
    },
    route: {
      kind: 'value',
      value: 'name',
      doc: 'Route of the tasks of lists and sitemaps; @media downloads. Default: by the URL',
    },
    media: { kind: 'flag', doc: 'The URLs lead to objects, not pages: images, films, files to be stored.' },
    pack: {
      kind: 'value',
      value: 'none|webdataset',
      doc: 'Objects one by one, or in tar shards with JSON beside each. Default: none',
    },
    'media-types': {
      kind: 'value',
      value: 'types',
      doc: 'Objects to take, by their bytes: image/*,video/mp4. Default: all',
    },
    browser: {
      kind: 'optional',
      value: 'always|auto',
      implied: 'always',
      doc: 'Fetch pages with a browser; auto: only those that are nothing without their scripts.',
    },
    screenshot: {
      kind: 'optional',
      value: 'full|screen',
      implied: 'full',
      doc: 'Keep a picture of each page, of the whole of it or of the screen; means --browser.',
    },
    pdf: { kind: 'flag', doc: 'Keep each page as PDF; means --browser.' },
    'wait-for': {
      kind: 'value',
      value: 'css',
      doc: 'Pages are there when such an element is visible; means --browser.',
    },
    'no-robots': { kind: 'flag', doc: 'Do not ask for robots.txt. Only for sites that are yours.' },
    'no-archive': { kind: 'flag', doc: 'Do not keep the pages.' },
    'allow-private': { kind: 'flag', doc: 'Permit loopback and private addresses.' },
    name: { kind: 'value', value: 'name', doc: 'Name of the job. Default: from the host or file' },
    fresh: { kind: 'flag', doc: 'Start a new run even if the last one of this name is unfinished.' },
    refresh: {
      kind: 'flag',
      doc: 'Visit the URLs of the last run of this name again, where they are due; unchanged pages cost a 304.',
    },
    watch: { kind: 'flag', doc: "Stay, and run again at the times of the job's schedule." },
    'dry-run': { kind: 'flag', doc: 'Show what would be done, then stop.' },
    json: { kind: 'flag', doc: 'End with one line of JSON on standard output.' },
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
