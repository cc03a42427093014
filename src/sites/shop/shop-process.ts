import { parseArgs } from 'node:util';
import { startShopSite } from './shop-site.ts';

/**
 * The shop in a process of its own: prints `{"url":"..."}` on one line, and ends when its standard
 * input closes, so that it never outlives the one who started it, not even after a kill -9.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    products: { type: 'string' },
    seed: { type: 'string' },
    'delay-scale': { type: 'string' },
    scripted: { type: 'boolean' },
  },
});
const numberOf = (text: string | undefined) => (text === undefined ? undefined : Number(text));

const site = await startShopSite({
  port: numberOf(values.port),
  products: numberOf(values.products),
  seed: numberOf(values.seed),
  delayScale: numberOf(values['delay-scale']),
  isScripted: values.scripted === true,
});
process.stdout.write(`${JSON.stringify({ url: site.url })}\n`);

process.stdin.resume();
process.stdin.once('close', async () => {
  await site.close();
  process.exit(0);
});
