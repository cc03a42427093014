import { blobs, type CommandSpec, dir, help, json } from './command-spec.ts';

/** What `seine lambda` can do, and the options of each verb: docs/lambda.md. */
export const LAMBDA: CommandSpec = {
  args: '<build|deploy|warm|local>',
  argsMax: 1,
  summary: 'Build, deploy, warm up or emulate the AWS Lambda worker.',
  details: [
    '`build` writes the worker as a zip. The bytes are the same each time. With --kind browser it writes a build folder',
    'for a container image with Chromium, and prints the commands that build it.',
    '`deploy` shows what will change, then creates or updates the role and the function.',
    '`warm` starts environments before a job needs them.',
    "`local` serves Lambda's API on 127.0.0.1 until stopped. Each environment is a process.",
  ].join('\n'),
  options: {
    kind: {
      kind: 'value',
      value: 'http|browser',
      doc: 'build, deploy: http is a zip, browser is an image with Chromium. Default: http',
    },
    name: {
      kind: 'value',
      value: 'function',
      doc: 'deploy, warm, local: name of the function. Default: seine, or seine-browser with --kind browser',
    },
    output: {
      kind: 'value',
      value: 'path',
      short: 'o',
      doc: 'build: where to write the zip or folder. Default: seine-lambda.zip or seine-lambda-browser',
    },
    zip: { kind: 'value', value: 'file', doc: 'deploy, local: use this zip instead of building one.' },
    image: {
      kind: 'value',
      value: 'uri|folder',
      doc: 'deploy: the image in ECR, with --kind browser. local: the build folder of an image.',
    },
    role: {
      kind: 'value',
      value: 'name',
      doc: 'deploy: IAM role of the function. Default: <function>-lambda',
    },
    memory: {
      kind: 'value',
      value: 'MB',
      doc: 'deploy, local: memory, 128 to 10240. Default: 1024, or 2048 with --kind browser',
    },
    timeout: {
      kind: 'value',
      value: 'seconds|auto',
      doc: 'deploy, local: timeout of the function, 1 to 900; `auto` is what a batch of the calibrated hosts needs. Default: 120',
    },
    tmp: {
      kind: 'value',
      value: 'MB',
      doc: 'deploy: size of /tmp, 512 to 10240. Default: 512, or 2048 with --kind browser',
    },
    architecture: {
      kind: 'value',
      value: 'x86_64|arm64',
      doc: 'deploy: processor architecture. Default: x86_64',
    },
    env: {
      kind: 'values',
      value: 'NAME=value',
      doc: 'deploy, local: environment variable of the function. Repeatable.',
    },
    'dry-run': { kind: 'flag', doc: 'deploy: only show what would change.' },
    count: { kind: 'value', value: 'n', doc: 'warm: number of environments, 1 to 10000. Default: 10' },
    port: { kind: 'value', value: 'n', doc: 'local: port to listen on. Default: a free port' },
    concurrency: { kind: 'value', value: 'n', doc: 'local: maximum number of environments. Default: 10' },
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
