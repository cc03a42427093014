import { type ExitName, SeineError } from '../../../core/errors.ts';
import {
  findChromiumPackage,
  installChromiumPackage,
} from '../../../fetch/browser/process/chromium-package.ts';
import { findChromium } from '../../../fetch/browser/process/find-chromium.ts';
import { type Command, print, printJson } from '../../context.ts';

export const browserCommand: Command = async (context): Promise<ExitName> => {
  const [what] = context.parsed.args;
  if (what !== 'install')
    throw new SeineError(`seine browser needs \`install\`${what === undefined ? '' : `, got '${what}'`}`, {
      hint: 'use `seine browser install`',
    });
  if (!context.json && !findChromiumPackage())
    print(context.stderr, 'fetching Chromium from the npm registry (68 MB) …\n');
  const { version } = findChromiumPackage() ?? (await installChromiumPackage());
  const { path } = await findChromium('bundled');
  if (context.json) printJson(context, { version, path });
  else print(context.stdout, `Chromium ${version} is at ${path}\n`);
  return 'success';
};
