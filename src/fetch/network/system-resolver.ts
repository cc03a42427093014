import { lookup } from 'node:dns/promises';
import type { Resolver } from '../../ports/resolver.ts';

/** Of the four threads that Node has for this and for files: one is left for files. */
const AT_ONCE = 3;

type Lookup = (hostname: string) => Promise<{ address: string }[]>;

/** Names as the system resolves them, which is how workers dial them. */
export function openSystemResolver(
  resolve: Lookup = (hostname) => lookup(hostname, { all: true }),
): Resolver {
  let running = 0;
  const waiting: (() => void)[] = [];
  return {
    async addressesOf(hostname) {
      if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
      running++;
      try {
        return (await resolve(hostname)).map(({ address }) => address);
      } catch {
        return [];
      } finally {
        running--;
        waiting.shift()?.();
      }
    },
  };
}
