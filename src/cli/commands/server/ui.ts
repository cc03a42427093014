import { openFolder } from '../../../app/folder.ts';
import type { ExitName } from '../../../core/errors.ts';
import { openReadOnlyServer } from '../../../server/read-only-server.ts';
import { type Context, print, printJson } from '../../context.ts';
import { toListenAddress } from '../../listen-address.ts';
import { watchSignals } from '../run/watch-signals.ts';

const LISTEN = '127.0.0.1:7421';

/** Shows what is in the folder or database, until a signal comes. It works on nothing and holds no lock. */
export async function uiCommand(context: Context): Promise<ExitName> {
  const listen = toListenAddress(context.parsed.values.listen ?? LISTEN);
  const folder = await openFolder(context.settings, { create: false });
  const signals = watchSignals({ secondExits: true });
  try {
    const server = await openReadOnlyServer(folder, { listen, settings: context.settings });
    if (context.json) printJson(context, { listening: server.url });
    else print(context.stdout, `dashboard: ${server.url}\n`);
    await signals.first;
    await server.close();
  } finally {
    signals.close();
    await folder.close();
  }
  return 'success';
}
