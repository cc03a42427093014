import { hash } from 'node:crypto';
import { awsOptions } from '../../aws/lambda-client.ts';
import { lambdaOf } from '../../config/load.ts';
import { SETTINGS, type SettingName } from '../../config/schema.ts';
import { SeineError } from '../../core/errors.ts';
import { formatBytes } from '../../tui/format.ts';
import { type Command, type Context, printJson } from '../context.ts';
import { buildLambdaZip, type LambdaZip } from './build-zip.ts';
import { openDeployment } from './deploy.ts';
import { checkBlobs, type Wanted } from './deploy-plan.ts';
import { readZip } from './local-command.ts';
import { functionName, numberOption, sizeOptions, variableOptions } from './option-values.ts';

/** Settings that workers have, too: what differs from the default here is given to the function. */
const PASSED_ON: SettingName[] = ['s3Endpoint', 's3Region', 's3PathStyle', 'allowPrivate', 'sync'];

export const deployCommand: Command = async (context) => {
  const place = lambdaOf(context.loaded.config);
  const wanted = wantedOf(context, (await awsOptions(place)).region);
  const zip = await zipOf(context);
  const isDry = context.parsed.values['dry-run'] === 'true';
  const deployment = await openDeployment(place, wanted, zip);
  const say = (line: string) => void (context.json || context.stdout.write(`${line}\n`));
  try {
    const steps = await deployment.plan();
    say(`zip: ${formatBytes(zip.bytes.length)}, sha256 ${zip.sha256}`);
    if (steps.length === 0) say(`${wanted.name} in ${wanted.region} is as it should be: nothing to change`);
    else say(`plan for ${wanted.name} in ${wanted.region}:`);
    for (const { text } of steps) say(`  ${text}`);
    if (!isDry)
      for (const { text, run } of steps) {
        await run();
        say(`done: ${text}`);
      }
    const changes = steps.map(({ text }) => text);
    if (context.json)
      printJson(context, { function: wanted.name, region: wanted.region, changes, dryRun: isDry });
    else if (steps.length > 0 && !isDry) say(`use it with --dispatch lambda://${wanted.name}`);
    return 'success';
  } finally {
    deployment.close();
  }
};

function wantedOf(context: Context, region: string): Wanted {
  const { values } = context.parsed;
  const { config } = context.loaded;
  const name = functionName(context);
  const role = values.role ?? `${name}-lambda`;
  if (!/^[\w+=,.@-]{1,64}$/.test(role)) throw new SeineError(`'${role}' cannot be the name of a role`);
  const architecture = values.architecture ?? 'x86_64';
  if (architecture !== 'x86_64' && architecture !== 'arm64')
    throw new SeineError(`--architecture is x86_64 or arm64, not '${architecture}'`);
  const blobs = checkBlobs(config.blobs, config.lambdaEndpoint !== null);
  return {
    name,
    role,
    region,
    ...sizeOptions(context),
    tmpMb: numberOption(context, 'tmp', { min: 512, max: 10_240, otherwise: 512 }),
    architecture,
    variables: {
      ...(config.blobs === null ? {} : { SEINE_BLOBS: config.blobs }),
      ...passedOn(context),
      ...variableOptions(context),
    },
    blobs,
  };
}

function passedOn({ loaded }: Context): Record<string, string> {
  return Object.fromEntries(
    PASSED_ON.filter((name) => loaded.origins[name] !== 'default').map((name) => {
      const value = loaded.config[name];
      return [SETTINGS[name].env, typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value)];
    }),
  );
}

async function zipOf(context: Context): Promise<Pick<LambdaZip, 'bytes' | 'sha256'>> {
  const bytes = await readZip(context.parsed.values.zip);
  return bytes === null ? buildLambdaZip() : { bytes, sha256: hash('sha256', bytes, 'base64') };
}
