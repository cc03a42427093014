import { SeineError } from '../../../core/errors.ts';
import { type ShopSite, startShopSite } from '../../../sites/shop/shop-site.ts';
import { type Command, printJson } from '../../context.ts';
import { watchSignals } from '../run/watch-signals.ts';

const PORT_DEFAULT = 8_080;
const PORT_MAX = 65_535;

/** Serves the shop that the templates and the documentation use, until a signal comes. */
export const shopCommand: Command = async (context) => {
  const { port, scripted } = context.parsed.values;
  const isScripted = scripted === 'true';
  const site = await open(portOf(port), isScripted);
  const signals = watchSignals({ secondExits: true });
  if (context.json) printJson(context, { url: site.url });
  else context.stdout.write(greeting(site, isScripted));
  await signals.first;
  signals.close();
  await site.close();
  return 'success';
};

function portOf(text: string | undefined): number {
  const port = Number(text ?? PORT_DEFAULT);
  if (Number.isInteger(port) && port >= 0 && port <= PORT_MAX) return port;
  throw new SeineError(`--port must be a number up to ${PORT_MAX}, got '${text}'`);
}

async function open(port: number, isScripted: boolean): Promise<ShopSite> {
  try {
    return await startShopSite({ port, isScripted });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error;
    throw new SeineError(`cannot listen on port ${port} (${code})`, {
      hint: 'choose another --port, or 0 for a free one',
    });
  }
}

function greeting({ url, expected }: ShopSite, isScripted: boolean): string {
  const browser = isScripted ? ' --browser' : '';
  return [
    `${url} is open: ${expected.productPages} products on ${expected.pages} pages`,
    `Try it: seine run ${url} --follow --select title=h1 --allow-private --rate 50${browser}`,
    'Press Ctrl-C to stop.\n',
  ].join('\n');
}
