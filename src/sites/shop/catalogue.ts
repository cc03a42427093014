/** The shop's data: the same seed gives the same shop, to the byte. */

export interface Category {
  slug: string;
  name: string;
  blurb: string;
  /** Base colour of its product pictures, in degrees. */
  hue: number;
  products: Product[];
}

export interface Product {
  id: number;
  path: string;
  title: string;
  sku: string;
  brand: string;
  priceCents: number;
  rating: number;
  reviews: number;
  stock: number;
  description: string;
  updatedOn: string;
  category: Category;
  related: Product[];
}

export interface Catalogue {
  categories: Category[];
  products: Product[];
}

export const PRODUCTS_PER_PAGE = 12;

const CATEGORIES = [
  [
    'lighting',
    'Lighting',
    'Lamps that make evenings longer.',
    44,
    ['Desk Lamp', 'Pendant', 'Lantern', 'Floor Lamp'],
  ],
  [
    'kitchen',
    'Kitchen',
    'Tools that earn their drawer.',
    12,
    ['Kettle', 'Skillet', 'Teapot', 'Cutting Board'],
  ],
  [
    'garden',
    'Garden',
    'For balconies, beds and borders.',
    128,
    ['Trowel', 'Planter', 'Watering Can', 'Secateurs'],
  ],
  [
    'office',
    'Office',
    'A desk worth sitting at.',
    210,
    ['Notebook', 'Pen Tray', 'Monitor Stand', 'Letter Opener'],
  ],
  ['outdoor', 'Outdoor', 'Carried up hills and back down.', 160, ['Backpack', 'Camp Stove', 'Tarp', 'Flask']],
  [
    'textiles',
    'Textiles',
    'Wool, linen and cotton, woven well.',
    330,
    ['Blanket', 'Cushion', 'Tea Towel', 'Rug'],
  ],
  ['toys', 'Toys', 'Made of wood, meant to last.', 280, ['Train Set', 'Spinning Top', 'Puzzle', 'Kite']],
  ['audio', 'Audio', 'Small speakers, large rooms.', 190, ['Speaker', 'Headphones', 'Turntable', 'Radio']],
] as const;

const MATERIALS = [
  'Oak',
  'Brass',
  'Linen',
  'Copper',
  'Ash',
  'Slate',
  'Wool',
  'Enamel',
  'Birch',
  'Cork',
  'Steel',
];
const MODELS = [
  'Alder',
  'Bergen',
  'Corva',
  'Dune',
  'Elba',
  'Fjord',
  'Galen',
  'Holm',
  'Iris',
  'Juno',
  'Kite',
  'Lund',
];
const BRANDS = ['Nordlys', 'Atelier Finch', 'Hearth & Hollow', 'Kobo Works', 'Maren', 'Tidewater'];
const OPENINGS = [
  'Built by hand in small series',
  'A quiet favourite of ours since the first day',
  'Simple on the outside, careful on the inside',
  'Designed to be repaired rather than replaced',
];
const CLOSINGS = [
  'Spare parts are kept in stock for ten years.',
  'It arrives in plain cardboard, without plastic.',
  'Wipe it with a dry cloth and it will outlive you.',
  'Each piece differs a little from the next.',
];

/** mulberry32: tiny and good enough to look like chance. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function slugOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
}

interface CatalogueOptions {
  products: number;
  seed: number;
  /** From the second day on, prices differ, and products came and went. */
  day?: number;
}

export function createCatalogue({ products: count, seed, day = 1 }: CatalogueOptions): Catalogue {
  const random = seededRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const categories = CATEGORIES.map(
    ([slug, name, blurb, hue]): Category => ({ slug, name, blurb, hue, products: [] }),
  );
  const products: Product[] = [];
  const add = (id: number) => {
    const index = (id - 1) % categories.length;
    const category = categories[index]!;
    const kind = pick(CATEGORIES[index]![4]);
    const material = pick(MATERIALS);
    const title = `${pick(MODELS)} ${material} ${kind}`;
    const product: Product = {
      id,
      path: `/product/${id}-${slugOf(title)}`,
      title,
      sku: `${category.slug.slice(0, 3).toUpperCase()}-${String(id).padStart(5, '0')}`,
      brand: pick(BRANDS),
      priceCents: 495 + Math.floor(random() * 240) * 100,
      rating: Math.round((3 + random() * 2) * 10) / 10,
      reviews: Math.floor(random() * 400),
      stock: Math.floor(random() * 60),
      description: `${pick(OPENINGS)}, this ${kind.toLowerCase()} is made of ${material.toLowerCase()}. ${pick(CLOSINGS)}`,
      updatedOn: `2026-0${1 + Math.floor(random() * 6)}-${String(1 + Math.floor(random() * 28)).padStart(2, '0')}`,
      category,
      related: [],
    };
    category.products.push(product);
    products.push(product);
  };
  const relate = (product: Product) => {
    const others = new Set<Product>();
    for (let i = 0; i < 4; i++) others.add(pick(products));
    others.delete(product);
    product.related = [...others];
  };
  for (let id = 1; id <= count; id++) add(id);
  for (const product of products) relate(product);
  for (let later = 2; later <= day; later++) {
    add(count + later - 1);
    relate(products.at(-1)!);
  }
  const catalogue = { categories, products: products.filter((product) => isThere(product, day)) };
  for (const category of categories)
    category.products = category.products.filter((product) => isThere(product, day));
  for (const product of catalogue.products) {
    product.related = product.related.filter((other) => isThere(other, day));
    product.priceCents = priceOn(product, day);
  }
  return { ...catalogue, categories: categories.filter((category) => category.products.length > 0) };
}

/** One product goes each day, beginning with the second: that of the same number. */
function isThere({ id }: Product, day: number): boolean {
  return id === 1 || id > day;
}

/** Each day a fifth of the products costs a tenth less than usual. */
function priceOn({ id, priceCents }: Product, day: number): number {
  return day > 1 && id % 5 === day % 5 ? Math.round(priceCents * 0.9) : priceCents;
}

export function pageCountOf(category: Category): number {
  return Math.ceil(category.products.length / PRODUCTS_PER_PAGE);
}

export function categoryPath(category: Category, page = 1): string {
  return page === 1 ? `/category/${category.slug}` : `/category/${category.slug}?page=${page}`;
}
