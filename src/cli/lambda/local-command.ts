import { readFile } from 'node:fs/promises';
import { folderOf } from '../../app/open-blobs.ts';
import { messageOf, SeineError } from '../../core/errors.ts';
import { type LambdaEmulator, startLambdaEmulator } from '../../lambda-emulator/emulator.ts';
import { watchSignals } from '../commands/run/watch-signals.ts';
import { type Command, type Context, printJson } from '../context.ts';
import { functionName, numberOption, sizeOptions, variableOptions } from './option-values.ts';

/** Serves Lambda's API until a signal comes. */
export const localCommand: Command = async (context) => {
  const name = functionName(context);
  const emulator = await open(context, name);
  const signals = watchSignals({ secondExits: true });
  if (context.json) {
    const { url, credentialsFile: credentials } = emulator;
    printJson(context, { url, function: name, credentials });
  } else context.stdout.write(greeting(emulator, name));
  await signals.first;
  signals.close();
  await emulator.close();
  return 'success';
};

async function open(context: Context, name: string): Promise<LambdaEmulator> {
  const { settings, loaded, stderr } = context;
  const port = numberOption(context, 'port', { min: 0, max: 65_535, otherwise: 0 });
  const { image } = context.parsed.values;
  const zip = await readZip(context.parsed.values.zip);
  const place = settings.blobs ?? settings.dir;
  const shows = loaded.config.log === 'info';
  try {
    return await startLambdaEmulator({
      port,
      name,
      ...(await sizeOptions(context)),
      concurrency: numberOption(context, 'concurrency', { min: 1, max: 1_000, otherwise: 10 }),
      variables: {
        SEINE_BLOBS: folderOf(place) ?? place,
        ...fleetKeyOf(settings.fleetKeys ?? []),
        ...variableOptions(context),
      },
      ...(zip ? { zip } : {}),
      ...(image === undefined ? {} : { image }),
      onLog: (text) => shows && stderr.write(text),
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error;
    throw new SeineError(`cannot listen on port ${port} (${code})`, {
      hint: 'choose another --port, or leave it out to use a free one',
    });
  }
}

/** Wherever it was set here, the function has it by its variable, and nowhere else. */
function fleetKeyOf(keys: readonly string[]): Record<string, string> {
  return keys.length === 0 ? {} : { SEINE_FLEET_KEY: keys.join(','), SEINE_FLEET_KEY_FILE: '' };
}

export async function readZip(path: string | undefined): Promise<Uint8Array | null> {
  if (path === undefined) return null;
  try {
    return await readFile(path);
  } catch (error) {
    throw new SeineError(`cannot read the zip: ${messageOf(error)}`, { hint: 'see `seine lambda build`' });
  }
}

function greeting({ url, credentialsFile }: LambdaEmulator, name: string): string {
  return [
    `${url} emulates Lambda with the function ${name}`,
    'Try it, from another terminal of the same user:',
    `  export SEINE_LAMBDA_ENDPOINT=${url} SEINE_LAMBDA_CREDENTIALS=${credentialsFile}`,
    `  seine run https://example.com/ --dispatch lambda://${name}`,
    'Press Ctrl-C to stop.\n',
  ].join('\n');
}
