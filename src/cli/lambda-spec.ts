import { blobs, type CommandSpec, dir, help, json } from './command-spec.ts';

/** What `seine lambda` can do, and the options of each verb: docs/lambda.md. */
export const LAMBDA: CommandSpec = {
  args: '<build|deploy|warm|local>',
  argsMax: 1,
  summary: 'Build, deploy, warm up or emulate the worker for AWS Lambda.',
  details: [
    '`build` writes the zip with the worker, the same bytes each time. With --kind browser it writes the folder that a',
    'container image with Chromium is built in, and says how.',
    '`deploy` creates or updates the role and the function, after it has shown what will change.',
    '`warm` has Lambda make environments before a job needs them.',
    "`local` serves Lambda's API on 127.0.0.1, with processes as environments, until stopped.",
  ].join('\n'),
  options: {
    kind: {
      kind: 'value',
      value: 'http|browser',
      doc: 'build, deploy: a zip, or an image with Chromium. Default: http',
    },
    name: {
      kind: 'value',
      value: 'function',
      doc: 'deploy, warm, local: the function. Default: seine, or seine-browser with a browser',
    },
    output: {
      kind: 'value',
      value: 'path',
      short: 'o',
      doc: 'build: the zip or folder. Default: seine-lambda.zip, seine-lambda-browser',
    },
    zip: { kind: 'value', value: 'file', doc: 'deploy, local: a zip that was built before.' },
    image: {
      kind: 'value',
      value: 'uri|folder',
      doc: 'deploy: the image in ECR, with --kind browser. local: the folder that an image is built in.',
    },
    role: { kind: 'value', value: 'name', doc: 'deploy: its role. Default: the function and -lambda' },
    memory: {
      kind: 'value',
      value: 'MB',
      doc: 'deploy, local: 128 to 10240. Default: 1024, 2048 with a browser',
    },
    timeout: { kind: 'value', value: 'seconds', doc: 'deploy, local: 1 to 900. Default: 120' },
    tmp: {
      kind: 'value',
      value: 'MB',
      doc: 'deploy: size of /tmp, 512 to 10240. Default: 512, 2048 with a browser',
    },
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
    'seine lambda build --kind browser',
    'seine lambda warm --count 200',
    'seine lambda local --blobs ./pages',
  ],
};
