import type { Target } from './target.ts';

/** Each is loaded when it is wanted: some open servers or databases. */
export const TARGETS: Record<string, () => Promise<Target>> = {
  robots: async () => (await import('./targets/robots.ts')).openRobotsTarget(),
  links: async () => (await import('./targets/links.ts')).openLinksTarget(),
  selectors: async () => (await import('./targets/selectors.ts')).openSelectorsTarget(),
};
