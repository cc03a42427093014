import { SeineError } from '../../../core/errors.ts';
import { type ShopSite, startShopSite } from '../../../sites/shop/shop-site.ts';
import { type Command, printJson } from '../../context.ts';
import { watchSignals } from '../run/watch-signals.ts';

const PORT_DEFAULT = 8_080;
const PORT_MAX = 65_535;
/** A product goes each day, and 300 are there. */
const DAY_MAX = 100;

/** Serves the shop that the templates and the documentation use, until a signal comes. */
export const shopCommand: Command = async (context) => {
  const { port, scripted, day } = context.parsed.values;
  const isScripted = scripted === 'true';
  const site = await open({ port: portOf(port), isScripted, day: dayOf(day) });
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

function dayOf(text: string | undefined): number {
  const day = Number(text ?? 1);
  if (Number.isInteger(day) && day >= 1 && day <= DAY_MAX) return day;
  throw new SeineError(`--day must be a number from 1 to ${DAY_MAX}, got '${text}'`);
}

async function open(options: { port: number; isScripted: boolean; day: number }): Promise<ShopSite> {
  const { port } = options;
  try {
    return await startShopSite(options);
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
