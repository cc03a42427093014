import { type CommandSpec, everywhere, json } from './command-spec.ts';

const limit = (doc: string) => ({ kind: 'value' as const, value: 'n', doc });

/** Keys of the API of `seine serve`. */
export const KEYS: CommandSpec = {
  args: 'create|list|revoke [key]',
  argsMax: 2,
  summary: 'Make, list and revoke API keys of `seine serve`.',
  details:
    'A key is printed once, when it is made; only its hash is stored. A key sees only the jobs that were made with it, one with admin scope sees all.\n' +
    'revoke takes the id or the name of a key. Servers that are running notice within two seconds.',
  options: {
    name: {
      kind: 'value',
      value: 'text',
      doc: 'For create: what the key is for. Each key in use has another name.',
    },
    scope: {
      kind: 'value',
      value: 'read|write|admin',
      doc: 'For create: read sees jobs and results, write also starts and changes them, admin may do everything. Default: read',
    },
    'requests-per-minute': limit('For create: requests per minute, or none. Default: 600'),
    'pages-under-way': limit('For create: pages that may be accepted and not finished. Default: no limit'),
    'pages-per-day': limit('For create: pages accepted per day, in UTC. Default: no limit'),
    'cost-per-day': limit('For create: what jobs may cost per day, in US dollars. Default: no limit'),
    'requests-per-day': limit(
      'For create: requests that jobs may send per day, in UTC, with retries and robots.txt. Default: no limit',
    ),
    'browser-seconds-per-day': limit(
      'For create: seconds of pages in a browser per day, in UTC. Default: no limit',
    ),
    weight: limit(
      'For create: share of the workers, 0.01 to 100, beside other keys and the folder itself, which have 1. Default: 1',
    ),
    json: { ...json, doc: 'Print JSON instead of text; list prints one line per key.' },
    ...everywhere,
  },
  examples: [
    'seine keys create --name ci --scope write',
    'seine keys create --name partner --scope write --pages-per-day 100000 --json',
    'seine keys list',
    'seine keys revoke ci',
  ],
};
