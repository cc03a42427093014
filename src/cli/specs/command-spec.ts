import { SETTINGS } from '../../config/schema.ts';

/** What a command is described by, and the options that several share. */

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
  /** Whether `-5` is an argument. */
  takesNumbers?: true;
  summary: string;
  details?: string;
  options: Record<string, OptionSpec>;
  examples: string[];
}

export const dir: OptionSpec = {
  kind: 'value',
  value: 'folder',
  doc: `${SETTINGS.dir.doc} Default: ${SETTINGS.dir.shown}`,
};
export const json: OptionSpec = { kind: 'flag', doc: 'Print JSON instead of text.' };
export const help: OptionSpec = { kind: 'flag', short: 'h', doc: 'Show this help.' };
export const workers: OptionSpec = {
  kind: 'value',
  value: 'n',
  doc: `${SETTINGS.workers.doc} Default: ${SETTINGS.workers.shown}`,
};
const store: OptionSpec = {
  kind: 'value',
  value: 'postgres://…',
  doc: `${SETTINGS.store.doc} Default: ${SETTINGS.store.shown}`,
};
export const dispatch: OptionSpec = {
  kind: 'value',
  value: 'threads|bullmq://…|lambda://…',
  doc: `${SETTINGS.dispatch.doc} Default: ${SETTINGS.dispatch.shown}`,
};
export const metrics: OptionSpec = {
  kind: 'optional',
  value: 'address:port',
  implied: '127.0.0.1:9464',
  doc: 'Serve metrics for Prometheus at /metrics, by default on 127.0.0.1:9464. See docs/monitoring.md.',
};
export const config: OptionSpec = {
  kind: 'value',
  value: 'file',
  doc: `${SETTINGS.config.doc.replace('this table', 'docs/configuration.md')} Default: ${SETTINGS.config.shown}`,
};
export const everywhere = { dir, store, config, help };
export const blobs: OptionSpec = {
  kind: 'value',
  value: 'folder|s3://…',
  doc: `${SETTINGS.blobs.doc} Default: ${SETTINGS.blobs.shown}`,
};
/** For commands that read or write what is stored. */
export const withBlobs = { blobs, ...everywhere };

export const limits: Record<string, OptionSpec> = {
  'max-pages': {
    kind: 'value',
    value: 'n',
    doc: 'Stop after requesting this many pages, also those that fail.',
  },
  'max-seconds': { kind: 'value', value: 'n', doc: 'Stop after this many seconds.' },
  'max-bytes': { kind: 'value', value: 'n', doc: 'Stop after receiving this many bytes.' },
  'max-requests': { kind: 'value', value: 'n', doc: 'Stop after sending this many requests.' },
  'max-dollars': { kind: 'value', value: 'n', doc: 'Stop after spending this many US dollars.' },
  'max-browser-seconds': { kind: 'value', value: 'n', doc: 'Stop after this many seconds of browser pages.' },
};

/** For commands that run a job to its end. */
export const failOn: OptionSpec = {
  kind: 'value',
  value: 'drop,dead,gone',
  doc: 'Exit with code 6 if a field is filled less often than before (drop) or pages of records are gone, with 3 if there are dead letters (dead). Default: dead',
};

const NO_ADAPTIVE: OptionSpec = {
  kind: 'flag',
  doc: 'Use the whole rate from the start, and do not slow down for hosts that refuse requests or become slow.',
};

/** Of a job that has run before, what is not given stays as it was. */
export const storedPace: Record<string, OptionSpec> = {
  rate: { kind: 'value', value: 'n|max', doc: 'New limit: requests per second and host.' },
  parallel: { kind: 'value', value: 'n', doc: 'New limit: concurrent requests per host.' },
  'no-adaptive': NO_ADAPTIVE,
};

export const pace: Record<string, OptionSpec> = {
  rate: { kind: 'value', value: 'n|max', doc: 'Requests per second and host. Default: 4' },
  parallel: {
    kind: 'value',
    value: 'n',
    doc: 'Concurrent requests per host. Default: 4, or 32 with --rate max',
  },
  'no-adaptive': NO_ADAPTIVE,
};
