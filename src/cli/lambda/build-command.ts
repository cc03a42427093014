import { writeFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { messageOf, SeineError } from '../../core/errors.ts';
import { formatBytes } from '../../tui/format.ts';
import { type Command, printJson } from '../context.ts';
import { buildLambdaImage, type LambdaImage } from './build-image.ts';
import { buildLambdaZip } from './build-zip.ts';
import { kindOption } from './option-values.ts';

export const buildCommand: Command = (context) =>
  kindOption(context) === 'browser' ? buildImage(context) : buildZip(context);

const buildZip: Command = async (context) => {
  const path = resolve(context.parsed.values.output ?? 'seine-lambda.zip');
  const { bytes, sha256, files } = await buildLambdaZip();
  try {
    await writeFile(path, bytes);
  } catch (error) {
    throw new SeineError(`cannot write the zip: ${messageOf(error)}`, { cause: error });
  }
  if (context.json) printJson(context, { path, bytes: bytes.length, sha256, files: files.length });
  else
    context.stdout.write(
      `${path}: ${formatBytes(bytes.length)}, handler index.handler for nodejs24.x\nsha256 ${sha256}\n`,
    );
  return 'success';
};

const buildImage: Command = async (context) => {
  const image = await buildLambdaImage(resolve(context.parsed.values.output ?? 'seine-lambda-browser'));
  const { folder, bytes, tag } = image;
  const commands = commandsFor(image);
  if (context.json) printJson(context, { folder, bytes, tag, commands });
  else
    context.stdout.write(
      [
        `${folder}: ${formatBytes(bytes)}. Build and push the image with Docker, for example:`,
        ...commands.map((command) => `  ${command}`),
        '',
      ].join('\n'),
    );
  return 'success';
};

/** Without provenance: Lambda does not take an image that is a list of two. */
function commandsFor({ folder, tag }: LambdaImage): string[] {
  const registry = '$ACCOUNT.dkr.ecr.$REGION.amazonaws.com';
  const uri = `${registry}/seine-browser:${tag}`;
  const path = relative(process.cwd(), folder) || '.';
  return [
    'aws ecr create-repository --repository-name seine-browser',
    `aws ecr get-login-password | docker login --username AWS --password-stdin ${registry}`,
    `docker buildx build --platform linux/amd64 --provenance=false --push -t ${uri} ${/^[\w./-]+$/.test(path) ? path : `'${path}'`}`,
    `seine lambda deploy --kind browser --image ${uri} --blobs s3://…`,
  ];
}
