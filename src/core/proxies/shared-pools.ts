/**
 * Lists of proxies that the operator shares. Apart from the schema of a job: every command reads its settings, and should
 * not have to load what checks a job.
 */

export const POOL_TYPES = ['datacenter', 'isp', 'residential', 'mobile'] as const;
type PoolType = (typeof POOL_TYPES)[number];

/** A list that jobs and requests may name without knowing where it is. */
export interface SharedPool {
  type: PoolType;
  file: string;
}

const isPoolType = (text: string): text is PoolType => POOL_TYPES.some((type) => type === text);

/** `dc=/lists/dc.txt,home=residential:/lists/home.txt` or `none`; null when it is neither. */
export function parseSharedPools(text: string): ReadonlyMap<string, SharedPool> | null {
  const pools = new Map<string, SharedPool>();
  for (const entry of text === 'none' ? [] : text.split(',')) {
    const [, name, type = 'datacenter', file] =
      /^\s*([\w.-]{1,64})=(?:([a-z]+):)?(.+?)\s*$/.exec(entry) ?? [];
    if (name === undefined || file === undefined || !isPoolType(type) || pools.has(name)) return null;
    pools.set(name, { type, file });
  }
  return pools;
}

export function sharedPoolsText(pools: ReadonlyMap<string, SharedPool>): string {
  return pools.size === 0
    ? 'none'
    : [...pools].map(([name, { type, file }]) => `${name}=${type}:${file}`).join(',');
}
