import { type Catalogue, type Product, seededRandom } from './catalogue.ts';

/** Everything about the shop that is not a page which simply answers. */
export interface Oddities {
  /** The first request fails with this status, later ones answer. */
  flaky: Map<string, 500 | 503>;
  /** The first request is refused with 429 and Retry-After: 1, later ones answer. */
  throttled: Set<string>;
  /** Milliseconds before the answer. */
  slow: Map<string, number>;
  redirects: Map<string, { status: 301 | 302; to: string }>;
  /** Linked, and not there. */
  dead: string[];
  /** Linked, and forbidden by robots.txt. */
  disallowed: string[];
  /** Links to put on a product's page besides its related products. */
  extraLinks: Map<Product, string[]>;
}

const FLAKY_MAX = 6;
const THROTTLED_MAX = 3;
const SLOW_MAX = 8;
const OLD_URLS_MAX = 12;

export const DEAL_PATH = '/deal-of-the-day';
export const ROBOTS_DISALLOW = ['/admin/', '/cart'];

export function planOddities(catalogue: Catalogue, seed: number): Oddities {
  const random = seededRandom(seed ^ 0x5eed);
  const shuffled = [...catalogue.products];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!];
  }
  // A tenth of the shop for each kind at most, so that a small shop is still mostly plain pages.
  const few = (most: number) => shuffled.splice(0, Math.min(most, Math.ceil(catalogue.products.length / 10)));

  const flaky = new Map(
    few(FLAKY_MAX).map((product, i) => [product.path, i % 3 === 2 ? (503 as const) : (500 as const)]),
  );
  const throttled = new Set(few(THROTTLED_MAX).map((product) => product.path));
  const slow = new Map(
    few(SLOW_MAX).map((product) => [product.path, 400 + Math.floor(random() * 501)] as const),
  );

  const redirects: Oddities['redirects'] = new Map();
  const extraLinks: Oddities['extraLinks'] = new Map();
  const products = catalogue.products;
  const link = (path: string) => {
    const from = products[Math.floor(random() * products.length)];
    if (from !== undefined) extraLinks.set(from, [...(extraLinks.get(from) ?? []), path]);
  };
  for (const target of few(OLD_URLS_MAX)) {
    const path = `/p/${target.id}`;
    redirects.set(path, { status: 301, to: target.path });
    link(path);
  }
  const deal = products[Math.floor(random() * products.length)];
  if (deal !== undefined) redirects.set(DEAL_PATH, { status: 302, to: deal.path });

  const gone = products.length + 1_000;
  const dead = [
    '/help/gift-cards',
    `/product/${gone}-discontinued-lamp`,
    `/product/${gone + 1}-sold-out-kite`,
  ];
  for (const path of dead.slice(1)) link(path);
  return {
    flaky,
    throttled,
    slow,
    redirects,
    dead,
    disallowed: ['/admin/', '/admin/login', '/cart'],
    extraLinks,
  };
}
