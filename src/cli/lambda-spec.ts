import { blobs, type CommandSpec, dir, help, json } from './command-spec.ts';

/** What `seine lambda` can do, and the options of each verb: docs/lambda.md. */
export const LAMBDA: CommandSpec = {
  args: '<build|deploy|warm|local>',
  argsMax: 1,
  summary: 'Build, deploy, warm up or emulate the worker for AWS Lambda.',
  details: [
    '`build` writes the zip with the worker, the same bytes each time.',
    '`deploy` creates or updates the role and the function, after it has shown what will change.',
    '`warm` has Lambda make environments before a job needs them.',
    "`local` serves Lambda's API on 127.0.0.1, with processes as environments, until stopped.",
  ].join('\n'),
  options: {
    name: { kind: 'value', value: 'function', doc: 'deploy, warm, local: the function. Default: seine' },
    output: { kind: 'value', value: 'file', short: 'o', doc: 'build: the zip. Default: seine-lambda.zip' },
    zip: { kind: 'value', value: 'file', doc: 'deploy, local: a zip that was built before.' },
    role: { kind: 'value', value: 'name', doc: 'deploy: its role. Default: the function and -lambda' },
    memory: { kind: 'value', value: 'MB', doc: 'deploy, local: 128 to 10240. Default: 1024' },
    timeout: { kind: 'value', value: 'seconds', doc: 'deploy, local: 1 to 900. Default: 120' },
    tmp: { kind: 'value', value: 'MB', doc: 'deploy: size of /tmp, 512 to 10240. Default: 512' },
    architecture: { kind: 'value', value: 'x86_64|arm64', doc: 'deploy: Default: x86_64' },
    env: { kind: 'values', value: 'NAME=value', doc: 'deploy, local: a variable of the function.' },
    'dry-run': { kind: 'flag', doc: 'deploy: only show what would change.' },
    count: { kind: 'value', value: 'n', doc: 'warm: so many environments, 1 to 10000. Default: 10' },
    port: { kind: 'value', value: 'n', doc: 'local: where to listen. Default: one that is free' },
    concurrency: { kind: 'value', value: 'n', doc: 'local: most environments. Default: 10' },
    json,
    blobs,
    dir,
    help,
  },
  examples: [
    'seine lambda build',
    'seine lambda deploy --blobs s3://bucket/crawl --dry-run',
    'seine lambda warm --count 200',
    'seine lambda local --blobs ./pages',
  ],
};
