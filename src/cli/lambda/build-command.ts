import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf, SeineError } from '../../core/errors.ts';
import { formatBytes } from '../../tui/format.ts';
import { type Command, printJson } from '../context.ts';
import { buildLambdaZip } from './build-zip.ts';

export const buildCommand: Command = async (context) => {
  const path = resolve(context.parsed.values.output ?? 'seine-lambda.zip');
  const { bytes, sha256, files } = await buildLambdaZip();
  try {
    await writeFile(path, bytes);
  } catch (error) {
    throw new SeineError(`the zip cannot be written: ${messageOf(error)}`, { cause: error });
  }
  if (context.json) printJson(context, { path, bytes: bytes.length, sha256, files: files.length });
  else
    context.stdout.write(
      `${path}: ${formatBytes(bytes.length)}, handler index.handler for nodejs24.x\nsha256 ${sha256}\n`,
    );
  return 'success';
};
