/** Where batches are carried to, as the setting `dispatch` says. */
export type DispatchTarget = (
  | { kind: 'threads' }
  /** URL of Redis: `redis://` or `rediss://`. */
  | { kind: 'bullmq'; url: string }
  /** Name or ARN of a function, or of an alias or version of it. */
  | { kind: 'lambda'; name: string }
) & {
  /** Its share of the batches, compared with the other targets. */
  weight: number;
};

const TARGETS_MAX = 16;
const WEIGHT_MAX = 1_000;

/** `threads=2,bullmq://host:6379=3,lambda://seine`: targets with their weights. Null when it makes no sense. */
export function parseDispatch(text: string): DispatchTarget[] | null {
  const targets = text.split(',').map((part) => parseTarget(part.trim()));
  if (targets.length > TARGETS_MAX || targets.some((target) => target === null)) return null;
  return targets as DispatchTarget[];
}

function parseTarget(text: string): DispatchTarget | null {
  const [, place, share] = /^(.*?)(?:=(\d+))?$/.exec(text)!;
  const weight = share === undefined ? 1 : Number(share);
  if (weight < 1 || weight > WEIGHT_MAX) return null;
  if (place === 'threads') return { kind: 'threads', weight };
  const url = place!.replace(/^bullmqs:\/\//, 'rediss://').replace(/^bullmq:\/\//, 'redis://');
  if (/^rediss?:\/\//.test(url)) return URL.parse(url)?.hostname ? { kind: 'bullmq', url, weight } : null;
  const name = /^lambda:\/\/([\w:.-]{1,170})$/.exec(place!)?.[1];
  return name === undefined ? null : { kind: 'lambda', name, weight };
}
