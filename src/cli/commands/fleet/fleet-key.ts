import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { messageOf, SeineError } from '../../../core/errors.ts';
import { PRIVATE_FILE } from '../../../core/file-modes.ts';
import { type Command, print, printJson } from '../../context.ts';

const KEY_BYTES = 32;

/** Makes a fleet key. A file that is there already is never replaced: a fleet may be using it. */
export const fleetKeyCommand: Command = async (context) => {
  const [what, file] = context.parsed.args;
  if (what !== 'create')
    throw new SeineError(
      what === undefined ? 'seine fleet-key needs `create`' : `got '${what}' instead of create`,
      {
        hint: 'use `seine fleet-key create [file]`',
      },
    );
  const key = randomBytes(KEY_BYTES).toString('base64url');
  if (file === undefined) {
    if (context.json) printJson(context, { key });
    else print(context.stdout, `${key}\n`);
    return 'success';
  }
  try {
    await writeFile(file, `${key}\n`, { mode: PRIVATE_FILE, flag: 'wx' });
  } catch (error) {
    throw new SeineError(`cannot write the fleet key: ${messageOf(error)}`, {
      hint: 'choose a new file in a folder that you can write to',
    });
  }
  if (context.json) printJson(context, { file });
  else
    print(
      context.stdout,
      `wrote a new fleet key: set SEINE_FLEET_KEY_FILE=${file} for every coordinator and worker\n`,
    );
  return 'success';
};
