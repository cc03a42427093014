import { hash } from 'node:crypto';
import { awsOptions } from '../../aws/lambda/lambda-client.ts';
import { lambdaOf } from '../../config/load.ts';
import { SETTINGS, type SettingName } from '../../config/schema.ts';
import { SeineError } from '../../core/errors.ts';
import { formatBytes } from '../../tui/format.ts';
import { type Command, type Context, printJson } from '../context.ts';
import { buildLambdaZip } from './build-zip.ts';
import { openDeployment } from './deploy.ts';
import { checkBlobs, checkImage, type Wanted, type WantedCode } from './deploy-plan.ts';
import { readZip } from './local-command.ts';
import {
  functionName,
  kindOption,
  numberOption,
  SIZES,
  sizeOptions,
  variableOptions,
} from './option-values.ts';

/** Settings that workers have, too: what differs from the default here is given to the function. */
const PASSED_ON: SettingName[] = [
  's3Endpoint',
  's3Region',
  's3PathStyle',
  'allowPrivate',
  'sync',
  'fleetKey',
];

export const deployCommand: Command = async (context) => {
  const place = lambdaOf(context.loaded.config);
  const wanted = await wantedOf(context, (await awsOptions(place)).region);
  const code = await codeOf(context);
  const isDry = context.parsed.values['dry-run'] === 'true';
  const deployment = await openDeployment(place, wanted, code);
  const say = (line: string) => void (context.json || context.stdout.write(`${line}\n`));
  try {
    const steps = await deployment.plan();
    say(
      code.kind === 'zip'
        ? `zip: ${formatBytes(code.bytes.length)}, sha256 ${code.sha256}`
        : `image: ${code.uri}`,
    );
    if (steps.length === 0) say(`${wanted.name} in ${wanted.region} is up to date: nothing to change`);
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
    else if (steps.length > 0 && !isDry) say(howToUse(wanted));
    return 'success';
  } finally {
    deployment.close();
  }
};

function howToUse({ name, kind }: Wanted): string {
  const itself = `use it with --dispatch lambda://${name}`;
  return kind === 'http'
    ? itself
    : `${itself}, or only for pages that need a browser: SEINE_LAMBDA_BROWSER_FUNCTION=${name}`;
}

async function wantedOf(context: Context, region: string): Promise<Wanted> {
  const { values } = context.parsed;
  const { config } = context.loaded;
  const name = functionName(context);
  const role = values.role ?? `${name}-lambda`;
  if (!/^[\w+=,.@-]{1,64}$/.test(role)) throw new SeineError(`'${role}' is not a valid role name`);
  const architecture = values.architecture ?? 'x86_64';
  if (architecture !== 'x86_64' && architecture !== 'arm64')
    throw new SeineError(`--architecture must be x86_64 or arm64, got '${architecture}'`);
  const kind = kindOption(context);
  if (kind === 'browser' && architecture !== 'x86_64')
    throw new SeineError('the Chromium of the image runs only on x86_64');
  const blobs = checkBlobs(config.blobs, config.lambdaEndpoint !== null);
  return {
    name,
    kind,
    role,
    region,
    ...(await sizeOptions(context)),
    tmpMb: numberOption(context, 'tmp', { min: 512, max: 10_240, otherwise: SIZES[kind].tmpMb }),
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

async function codeOf(context: Context): Promise<WantedCode> {
  const { image, zip } = context.parsed.values;
  if (kindOption(context) === 'browser') return { kind: 'image', uri: checkImage(image) };
  if (image !== undefined) throw new SeineError('--image needs --kind browser');
  const bytes = await readZip(zip);
  if (bytes === null) return { kind: 'zip', ...(await buildLambdaZip()) };
  return { kind: 'zip', bytes, sha256: hash('sha256', bytes, 'base64') };
}
