import { SETTINGS } from '../config/schema.ts';

/** Every command and option, once: parsing, `--help` and docs/cli.md come from here. */

export interface OptionSpec {
  /** `flag` takes no value; `optional` takes one only as --name=value. */
  kind: 'flag' | 'value' | 'values' | 'optional';
  value?: string;
  short?: string;
  doc: string;
  /** What an `optional` without a value means. */
  implied?: string;
}

export interface CommandSpec {
  /** Positional arguments, as shown. */
  args: string;
  argsMax: number;
  summary: string;
  details?: string;
  options: Record<string, OptionSpec>;
  examples: string[];
}

const dir: OptionSpec = {
  kind: 'value',
  value: 'folder',
  doc: `${SETTINGS.dir.doc} Default: ${SETTINGS.dir.shown}`,
};
const json: OptionSpec = { kind: 'flag', doc: 'Print JSON instead of text.' };
const help: OptionSpec = { kind: 'flag', short: 'h', doc: 'Show this help.' };
const workers: OptionSpec = {
  kind: 'value',
  value: 'n',
  doc: `${SETTINGS.workers.doc} Default: ${SETTINGS.workers.shown}`,
};
const everywhere = { dir, help };

const limits: Record<string, OptionSpec> = {
  'max-pages': { kind: 'value', value: 'n', doc: 'Stop after so many pages.' },
  'max-seconds': { kind: 'value', value: 'n', doc: 'Stop after so many seconds.' },
  'max-bytes': { kind: 'value', value: 'n', doc: 'Stop after so many bytes.' },
};

export const COMMANDS: Record<string, CommandSpec> = {
  run: {
    args: '<url | file | job file>...',
    argsMax: Number.POSITIVE_INFINITY,
    summary: 'Scrape URLs, a list of URLs, or a job.',
    details:
      'A list is .txt, .csv, .tsv or .jsonl, each also .gz, or - for standard input. A job file is .ts, .js, .yaml or .json.\n' +
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
      'batch-size': { kind: 'value', value: 'n', doc: 'Most tasks in one batch. Default: 120' },
      'user-agent': {
        kind: 'value',
        value: 'text',
        doc: 'User-Agent header. Default: Seine/<version>, with your contact',
      },
      contact: { kind: 'value', value: 'url|mail', doc: SETTINGS.contact.doc },
      'url-column': {
        kind: 'value',
        value: 'name',
        doc: 'Column or property of lists that holds the URL. Default: url',
      },
      'no-robots': { kind: 'flag', doc: 'Do not ask for robots.txt. Only for sites that are yours.' },
      'no-archive': { kind: 'flag', doc: 'Do not keep the pages.' },
      'allow-private': { kind: 'flag', doc: 'Permit loopback and private addresses.' },
      name: { kind: 'value', value: 'name', doc: 'Name of the job. Default: from the host or file' },
      fresh: { kind: 'flag', doc: 'Start a new run even if the last one of this name is unfinished.' },
      'dry-run': { kind: 'flag', doc: 'Show what would be done, then stop.' },
      json: { kind: 'flag', doc: 'End with one line of JSON on standard output.' },
      ...everywhere,
    },
    examples: [
      'seine run https://shop.example/ --follow --max-pages 500',
      'seine run urls.txt --select title=h1 --select price=.price',
      'seine run job.ts',
      'cat urls.txt | seine run - --name nightly --json',
    ],
  },
  resume: {
    args: '[job]',
    argsMax: 1,
    summary: 'Continue a job that was stopped, interrupted or tripped.',
    options: { workers, ...limits, json, ...everywhere },
    examples: ['seine resume', 'seine resume shop --max-pages 10000'],
  },
  status: {
    args: '[job]',
    argsMax: 1,
    summary: 'Show the counters of a job, also while it runs.',
    options: { json, ...everywhere },
    examples: ['seine status', 'seine status shop --json'],
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
    summary: 'Write tasks, records or attempts to standard output or a file.',
    options: {
      what: { kind: 'value', value: 'tasks|records|attempts', doc: 'Default: records' },
      format: { kind: 'value', value: 'jsonl|csv', doc: 'Default: jsonl' },
      output: { kind: 'value', value: 'file', short: 'o', doc: 'File to write instead of standard output.' },
      ...everywhere,
    },
    examples: ['seine export shop --what tasks', 'seine export shop --format csv -o products.csv'],
  },
  page: {
    args: '<url>',
    argsMax: 1,
    summary: 'Print a stored page.',
    options: {
      job: { kind: 'value', value: 'job', doc: 'Of which job. Default: the newest' },
      headers: { kind: 'flag', doc: 'Print the response headers first.' },
      ...everywhere,
    },
    examples: ['seine page https://shop.example/', 'seine page https://shop.example/ --headers'],
  },
  doctor: {
    args: '',
    argsMax: 0,
    summary: 'Check the machine, the settings and the folder.',
    options: { workers, json, ...everywhere },
    examples: ['seine doctor'],
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
